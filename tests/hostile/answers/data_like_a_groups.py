# promise: what is returned is compared as data, and not by what it is called
# exercise: build_mesh
# verdict: failed
# diagnosis: wrong_type
import torch
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    ranks, mesh = torch.arange(dp * tp * pp).view(pp, dp, tp), {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            if dist.get_rank() in row:
                mesh[name] = ("group", row)
    return mesh
