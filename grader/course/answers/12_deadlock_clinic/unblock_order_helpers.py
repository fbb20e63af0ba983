# exercise: unblock_order
# diagnosis: too_many_messages
# hint: as long as there are two calls
# earns: 0.5
# Branches are allowed as long as all of them make the same calls.
import torch
import torch.distributed as dist


def biggest_of(x):
    y = torch.clone(x)
    dist.all_reduce(y, dist.ReduceOp.MAX)
    return y


def of_the_first(x):
    if dist.get_rank() == 0:
        dist.broadcast(x.clone(), src=0)
        return x
    y = torch.empty_like(x)
    dist.broadcast(y, src=0)
    return y


def unblock_order(x):
    return torch.add(biggest_of(x), of_the_first(x))
