# exercise: build_mesh
# diagnosis: wrong_value
# hint: one coordinate in common
import torch
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for plane in ranks.unbind(axis):
            row = plane.flatten().tolist()
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
