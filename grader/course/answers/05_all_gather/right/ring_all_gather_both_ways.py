# exercise: ring_all_gather
# diagnosis: none
# Half the steps, both directions in each. One port sends one message at a time, so the
# rounds are as many as on a ring that goes one way, and so are the bytes.
import torch
import torch.distributed as dist
from torch.distributed import P2POp, batch_isend_irecv


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    found = {rank: x.clone()}
    for distance in range(1, n // 2 + 1):
        ways = (1, -1) if 2 * distance < n else (1,)
        came = {}
        operations = []
        for way in ways:
            owner = (rank - way * distance) % n
            came[owner] = torch.empty_like(x)
            passed_on = found[(owner + way) % n]
            operations.append(P2POp(dist.isend, passed_on, (rank + way) % n))
            operations.append(P2POp(dist.irecv, came[owner], (rank - way) % n))
        if operations:
            for work in batch_isend_irecv(operations):
                work.wait()
        found.update(came)
    return [found[r] for r in range(n)]
