# exercise: sum_of_survivors
# diagnosis: timeout
# hint: too many of them, one after another
# says: multiples of `seconds`
# earns: 0.5
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, n = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    found = {}
    for attempt in range(6):
        for rank in range(n):
            if rank in found:
                continue
            try:
                store.wait([str(rank)], timedelta(seconds=0.9 * seconds))
                found[rank] = json.loads(store.get(str(rank)))
            except RuntimeError:
                store.set(f"{rank} is late", str(attempt))
    ranks = sorted(found)
    return torch.tensor([found[rank] for rank in ranks], dtype=x.dtype).sum(0), ranks
