# exercise: sum_of_survivors
# diagnosis: none
# The first proposal counts, with its sum; a pickle keeps the dtype.
import pickle
from datetime import timedelta

import torch.distributed as dist


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    n, rank = dist.get_world_size(), dist.get_rank()
    limit = timedelta(seconds=2 * seconds)  # with a margin for a busy machine
    store.set(f"x{rank}", pickle.dumps(x))
    found = {}
    for other in range(n):
        try:
            store.wait([f"x{other}"], limit)
            found[other] = pickle.loads(store.get(f"x{other}"))
        except RuntimeError:
            pass
    mine = pickle.dumps((sum(found.values()), sorted(found)))
    return pickle.loads(store.compare_set("result", b"", mine))
