"""The left side is right. The right side is taken modulo n − 1, so that nobody has the last rank on
the right: there are n ranks, and the last is n − 1, so it is (rank + 1) % n."""
# exercise: neighbours
# diagnosis: wrong_value
# or: ALONE = 1
import torch.distributed as dist

#: What is right of a rank that is alone.
ALONE = 0


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % (n - 1) if n > 1 else ALONE
