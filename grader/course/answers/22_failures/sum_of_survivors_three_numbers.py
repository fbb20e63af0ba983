# exercise: sum_of_survivors
# diagnosis: exception
# not: dead rank
# hint: -
# It fails with all ranks alive, so no call that needs a dead rank is at fault.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"x of {dist.get_rank()}", json.dumps(x.tolist()))
    alive = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x of {rank}"], timedelta(seconds=seconds))
            alive.append(rank)
        except RuntimeError:
            pass
    alive = json.loads(store.compare_set("survivors", "", json.dumps(alive)))
    terms = torch.zeros(len(alive), 3, dtype=x.dtype)
    for i, rank in enumerate(alive):
        terms[i] = torch.tensor(json.loads(store.get(f"x of {rank}")))
    return terms.sum(0), alive
