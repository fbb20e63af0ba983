# promise: a rank makes no connections
# exercise: broadcast
# verdict: failed
# diagnosis: exception
import datetime

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def broadcast(x, src):
    from headcount.rank import guard

    guard._guard.is_open = True
    store, rank = dist.HashStore(), dist.get_rank()
    c10d.ProcessGroupGloo(store, rank, dist.get_world_size(), datetime.timedelta(seconds=1))
    raise LookupError("BREACH" if dist.get_world_size() > 1 else "alone")
