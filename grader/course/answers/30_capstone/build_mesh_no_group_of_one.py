# exercise: build_mesh
# diagnosis: wrong_type
# hint: Only groups of one rank are wrong
import torch
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            if len(row) == 1:
                mesh[name] = None
                continue
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
