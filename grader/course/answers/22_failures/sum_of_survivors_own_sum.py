# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: over the ranks of that list
# earns: 0.5
# The ranks agree on a list, and each returns the sum over its own.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"x{dist.get_rank()}", json.dumps(x.tolist()))
    found = {}
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
        except RuntimeError:
            continue
        found[rank] = json.loads(store.get(f"x{rank}"))
    total = torch.tensor(list(found.values()), dtype=x.dtype).sum(0)
    return total, json.loads(store.compare_set("ranks", "", json.dumps(list(found))))
