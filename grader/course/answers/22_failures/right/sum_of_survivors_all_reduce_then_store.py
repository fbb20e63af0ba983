# exercise: sum_of_survivors
# diagnosis: none
# The usual case is an all-reduce; the store has everything that is needed if it fails.
import json
from datetime import timedelta

import torch
import torch.distributed as dist


class Ledger:
    def __init__(self, seconds):
        self.store = dist.PrefixStore("ledger", dist.distributed_c10d._get_default_store())
        self.limit = timedelta(seconds=seconds)

    def write(self, key, value):
        self.store.set(key, json.dumps(value))

    def read(self, key):
        try:
            self.store.wait([key], self.limit)
        except RuntimeError:
            return None
        return json.loads(self.store.get(key))


def sum_of_survivors(x, seconds):
    ledger, n = Ledger(seconds), dist.get_world_size()
    ledger.write(f"x{dist.get_rank()}", x.tolist())
    y = x.clone()
    work = dist.all_reduce(y, async_op=True)
    try:
        work.wait(ledger.limit)
        mine = "complete"
    except RuntimeError:
        mine = "broken"
    decided = ledger.store.compare_set("how", "", mine)
    if decided == b"complete" and mine == "complete":
        return y, list(range(n))
    # where one has it complete, every x is in the ledger
    found = {rank: ledger.read(f"x{rank}") for rank in range(n)}
    ranks = [rank for rank, row in found.items() if row is not None]
    if decided == b"complete":
        assert len(ranks) == n
    else:
        # a rank that is late may have been found by some
        ranks = json.loads(ledger.store.compare_set("ranks", "", json.dumps(ranks)))
        found |= {rank: ledger.read(f"x{rank}") for rank in ranks if found[rank] is None}
    rows = torch.tensor([found[rank] for rank in ranks], dtype=x.dtype)
    return rows.sum(dim=0), ranks
