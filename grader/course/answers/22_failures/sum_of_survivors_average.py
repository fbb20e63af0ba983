# exercise: sum_of_survivors
# diagnosis: wrong_dtype
# hint: not an average
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
            ranks.append(rank)
        except RuntimeError:
            pass
    terms = [json.loads(store.get(str(rank))) for rank in ranks]
    return torch.tensor(terms, dtype=x.dtype).sum(0) / len(ranks), ranks
