# exercise: ring_schedule
# diagnosis: wrong_value
# hint: use the argument rank
import torch.distributed as dist


def ring_schedule(rank, world_size):
    rank, n = dist.get_rank(), world_size
    first = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    return first + [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
