# exercise: sum_of_survivors
# diagnosis: input_changed
# hint: work on a copy
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, n = dist.distributed_c10d._get_default_store(), dist.get_world_size()
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    ranks = []
    for rank in range(n):
        try:
            store.wait([str(rank)], timedelta(seconds=seconds))
        except RuntimeError:
            continue
        ranks.append(rank)
        if rank != dist.get_rank():
            x += torch.tensor(json.loads(store.get(str(rank))), dtype=x.dtype)
    return x.clone(), ranks
