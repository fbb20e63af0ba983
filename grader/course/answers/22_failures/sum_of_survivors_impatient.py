# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: up to `seconds` late: wait that long
# Each rank is waited for, but much shorter than it may be late.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, n = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.set(f"x{dist.get_rank()}", json.dumps(x.tolist()))
    ranks = []
    for rank in range(n):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds / 10))
            ranks.append(rank)
        except RuntimeError:
            pass
    ranks = json.loads(store.compare_set("list", "", json.dumps(ranks)))
    rows = torch.tensor([json.loads(store.get(f"x{rank}")) for rank in ranks], dtype=x.dtype)
    return rows.sum(0), ranks
