# exercise: neighbours
# diagnosis: none
# Negative indices close the ring on the left; a list is as good as a tuple.
import torch.distributed as dist


def neighbours():
    ring = list(range(dist.get_world_size()))
    rank = dist.get_rank()
    return [ring[rank - 1], ring[rank + 1 - len(ring)]]
