# promise: an exercise that has no use for groups gives no way to connect
# exercise: neighbours
# verdict: failed
# diagnosis: forbidden_call
# says: new_group is not allowed
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    dist.new_group(range(n))
    return (rank - 1) % n, (rank + 1) % n
