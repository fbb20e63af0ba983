"""All ranks stop as soon as one would. They agree now, but on another question: compare the mean
loss with best, and not each loss."""
# exercise: should_stop
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def should_stop(loss, best):
    stop = torch.tensor(int(loss >= best))
    dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    return bool(stop)
