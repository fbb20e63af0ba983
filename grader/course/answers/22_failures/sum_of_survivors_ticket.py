# exercise: sum_of_survivors
# diagnosis: exception
# hint: needs a dead rank
# The rank with the first ticket may die before it has set the list.
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
    if store.add("ticket", 1) == 1:
        store.set("list", json.dumps(ranks))
    store.wait(["list"], timedelta(seconds=2 * seconds))
    ranks = json.loads(store.get("list"))
    rows = torch.tensor([json.loads(store.get(f"x{rank}")) for rank in ranks], dtype=x.dtype)
    return rows.sum(0), ranks
