# exercise: unblock_order
# diagnosis: wrong_value
# hint: Rank 0's x comes back as 0
# Packs rank 0's x with zeros elsewhere and MAX
import torch
import torch.distributed as dist


def unblock_order(x):
    both = torch.stack([x, x if dist.get_rank() == 0 else torch.zeros_like(x)])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
