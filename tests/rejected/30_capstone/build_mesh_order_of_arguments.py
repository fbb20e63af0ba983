# exercise: build_mesh
# diagnosis: wrong_value
# hint: Ranks are numbered in another order
import torch
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(dp, tp, pp)
    mesh = {}
    for axis, name in enumerate(("dp", "tp", "pp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
