# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: up to 2**53 only
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, n = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.set(f"x{dist.get_rank()}", json.dumps(x.double().tolist()))
    ranks = []
    for rank in range(n):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
            ranks.append(rank)
        except RuntimeError:
            pass
    ranks = json.loads(store.compare_set("list", "", json.dumps(ranks)))
    rows = torch.tensor([json.loads(store.get(f"x{rank}")) for rank in ranks], dtype=torch.float64)
    return rows.sum(0).to(x.dtype), ranks
