# exercise: sum_of_survivors
# diagnosis: deadlock
# hint: Wait for each key with a limit first
import json

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    ranks = list(range(dist.get_world_size()))
    rows = [json.loads(store.get(str(rank))) for rank in ranks]
    return torch.tensor(rows, dtype=x.dtype).sum(0), ranks
