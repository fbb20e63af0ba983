# exercise: sum_of_survivors
# diagnosis: exception
# hint: It works when another rank dies, but
# Rank 0 writes the list
import json
from datetime import timedelta

import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    s, n, r = dist.distributed_c10d._get_default_store(), dist.get_world_size(), dist.get_rank()
    s.set(f"x{r}", json.dumps(x.tolist()))
    if r == 0:
        al = []
        for i in range(n):
            try:
                s.wait([f"x{i}"], timedelta(seconds=seconds))
                al.append(i)
            except RuntimeError:
                pass
        s.set("list", json.dumps(al))
    s.wait(["list"], timedelta(seconds=4 * seconds))
    al = json.loads(s.get("list"))
    return torch.tensor([json.loads(s.get(f"x{i}")) for i in al], dtype=x.dtype).sum(0), al
