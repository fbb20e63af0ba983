"""What is reduced has dtype float32, and not that of x, so digits are lost: torch.full, torch.zeros and
torch.empty make float32 unless they are told otherwise, with dtype=x.dtype."""
# exercise: unblock_order
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def unblock_order(x):
    both = torch.full((2, *x.shape), float("-inf"))
    for row in range(2 if dist.get_rank() == 0 else 1):
        both[row] = x
    dist.all_reduce(both, dist.ReduceOp.MAX)
    return (both[0] + both[1]).to(x.dtype)
