# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: do not agree
# earns: 0.5
# Every rank puts its list over those of the others, and reads whichever is there at that moment.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"x{dist.get_rank()}", json.dumps(x.tolist()))
    ranks = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
        except RuntimeError:
            continue
        ranks.append(rank)
    store.set("ranks", json.dumps(ranks))
    ranks = json.loads(store.get("ranks"))
    rows = [json.loads(store.get(f"x{rank}")) for rank in ranks]
    return torch.tensor(rows, dtype=x.dtype).sum(0), ranks
