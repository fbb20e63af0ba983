"""You give n as a rank, and the last one is n − 1: a ring of n ranks has n places, so take % n, not
% (n + 1)."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % (n + 1), (rank + 1) % (n + 1)
