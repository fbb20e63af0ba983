# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: has rounded x on its way
# or: FORMAT = "{:.4f}"
# or: FORMAT = "{:.8e}"
from datetime import timedelta

import torch
import torch.distributed as dist

FORMAT = "{:.6f}"


def sum_of_survivors(x, seconds):
    store = dist.distributed_c10d._get_default_store()
    text = " ".join(FORMAT.format(number) for number in x.flatten().tolist())
    store.set(f"x{dist.get_rank()}", text)
    ranks = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x{rank}"], timedelta(seconds=seconds))
        except dist.DistStoreError:
            continue
        ranks.append(str(rank))
    ranks = [int(r) for r in store.compare_set("ranks", "", " ".join(ranks)).split()]
    rows = [[float(one) for one in store.get(f"x{rank}").split()] for rank in ranks]
    return torch.tensor(rows, dtype=x.dtype).sum(0).view_as(x), ranks
