# exercise: row_parallel
# diagnosis: wrong_gradient
# hint: right, but by luck
# earns: 0.5
# or: HIDDEN = "data"
# or: HIDDEN = "detach"
# Torch's warning is gone, and autograd sees no more than before.
import torch
import torch.distributed as dist

HIDDEN = "no_grad"


def row_parallel(x_shard, weight_shard):
    y = x_shard @ weight_shard
    if HIDDEN == "no_grad":
        with torch.no_grad():
            dist.all_reduce(y)
    else:
        dist.all_reduce(y.data if HIDDEN == "data" else y.detach())
    return y
