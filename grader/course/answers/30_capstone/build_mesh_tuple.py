# exercise: build_mesh
# diagnosis: wrong_type
# hint: Return a dictionary
import torch
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh["dp"], mesh["tp"], mesh["pp"]
