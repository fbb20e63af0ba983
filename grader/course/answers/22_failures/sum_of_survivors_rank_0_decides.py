# exercise: sum_of_survivors
# diagnosis: exception
# hint: not when rank 0 does
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    limit = timedelta(seconds=seconds)
    store.set(str(dist.get_rank()), json.dumps(x.tolist()))
    if dist.get_rank() == 0:
        ranks = []
        for rank in range(dist.get_world_size()):
            try:
                store.wait([str(rank)], limit)
                ranks.append(rank)
            except RuntimeError:
                pass
        store.set("ranks", json.dumps(ranks))
    store.wait(["ranks"], 4 * limit)
    ranks = json.loads(store.get("ranks"))
    rows = [json.loads(store.get(str(rank))) for rank in ranks]
    return torch.tensor(rows, dtype=x.dtype).sum(0), ranks
