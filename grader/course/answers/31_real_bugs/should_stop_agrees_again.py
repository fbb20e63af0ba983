"""One call is enough. Once all ranks have the same mean, they decide alike, so they need not tell
each other what they have decided; and best is the same everywhere."""
# exercise: should_stop
# diagnosis: too_many_messages
import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    stop = torch.tensor(int(mean.item() / dist.get_world_size() >= best))
    dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    return bool(stop)
