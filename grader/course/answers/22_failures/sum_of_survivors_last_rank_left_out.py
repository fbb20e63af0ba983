# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: A rank that lives is left out
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, n = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    found = {}
    for rank in range(n - 1):
        try:
            store.wait([str(rank)], timedelta(seconds=seconds))
        except RuntimeError:
            continue
        found[rank] = json.loads(store.get(str(rank)))
    return torch.tensor(list(found.values()), dtype=x.dtype).sum(0), list(found)
