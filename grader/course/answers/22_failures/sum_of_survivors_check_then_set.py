# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: store.compare_set
# Two ranks may both find no list, and each reads its own.
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
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
            ranks.append(rank)
        except RuntimeError:
            pass
    if not store.check(["list"]):
        store.set("list", json.dumps(ranks))
    ranks = json.loads(store.get("list"))
    rows = torch.tensor([json.loads(store.get(f"x{rank}")) for rank in ranks], dtype=x.dtype)
    return rows.sum(0), ranks
