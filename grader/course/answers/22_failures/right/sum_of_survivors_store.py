# exercise: sum_of_survivors
# diagnosis: none
# An entry of the store is there for all or for none, and each waits longer than any rank can be late.
import json
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


def sum_of_survivors(x, seconds):
    store = _get_default_store()
    limit = timedelta(seconds=3 * seconds)
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    ranks = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([str(rank)], limit)
        except dist.DistStoreError:
            continue
        ranks.append(rank)
    total = torch.zeros_like(x)
    for rank in ranks:
        total += torch.tensor(json.loads(store.get(str(rank))), dtype=x.dtype)
    return total, ranks
