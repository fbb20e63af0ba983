# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: do not agree
# earns: 0.5
# An entry is there for all or for none; but a rank that is late finds all the others.
import json
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


def sum_of_survivors(x, seconds):
    store = _get_default_store()
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    ranks = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([str(rank)], timedelta(seconds=seconds))
        except dist.DistStoreError:
            continue
        ranks.append(rank)
    total = torch.zeros_like(x)
    for rank in ranks:
        total += torch.tensor(json.loads(store.get(str(rank))), dtype=x.dtype)
    return total, ranks
