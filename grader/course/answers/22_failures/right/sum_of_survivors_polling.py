# exercise: sum_of_survivors
# diagnosis: none
# Polls with check until a common deadline; the first rank to draw a ticket decides.
import json
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    n, rank = dist.get_world_size(), dist.get_rank()
    store.set(f"x/{rank}", json.dumps(x.tolist()))
    until = time.monotonic() + seconds
    keys = [f"x/{other}" for other in range(n)]
    while time.monotonic() < until and not store.check(keys):
        time.sleep(0.01)
    here = [other for other in range(n) if store.check([keys[other]])]
    text = ",".join(map(str, here))
    if store.add("ticket", 1) == 1:
        store.compare_set("decision", "", text)
    try:
        # one that began `seconds` later decides as much later
        store.wait(["decision"], timedelta(seconds=2 * seconds))
    except dist.DistError:
        # the one with the first ticket is dead: whichever is the next to propose decides
        store.compare_set("decision", "", text)
    text = store.get("decision").decode()
    ranks = [int(word) for word in text.split(",")]
    parts = [json.loads(store.get(keys[other])) for other in ranks]
    return torch.tensor(parts, dtype=x.dtype).sum(0), ranks
