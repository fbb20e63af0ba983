# exercise: sum_of_survivors
# diagnosis: nondeterministic
# hint: in the order of the list
# earns: 0.5
# Each rank begins with its own x, so that the sums are rounded differently.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store, me = dist.distributed_c10d._get_default_store(), dist.get_rank()
    store.set(f"x{me}", json.dumps(x.tolist()))
    ranks = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
        except RuntimeError:
            continue
        ranks.append(rank)
    ranks = json.loads(store.compare_set("ranks", "", json.dumps(ranks)))
    total = torch.zeros_like(x)
    for rank in sorted(ranks, key=lambda rank: (rank - me) % dist.get_world_size()):
        total += torch.tensor(json.loads(store.get(f"x{rank}")), dtype=x.dtype)
    return total, ranks
