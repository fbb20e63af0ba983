# exercise: ring_all_gather
# diagnosis: none
# All receives are posted before the first send; the sends are waited for at the end.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    order = [(rank - s) % n for s in range(n)]
    parts = {owner: torch.empty_like(x) for owner in order}
    parts[rank].copy_(x)
    receives = [dist.irecv(parts[owner], (rank - 1) % n) for owner in order[1:]]
    sends = []
    for i, owner in enumerate(order[:-1]):
        if i > 0:
            receives[i - 1].wait()
        sends.append(dist.isend(parts[owner], (rank + 1) % n))
    for request in receives[-1:] + sends:
        request.wait()
    return [parts[r] for r in range(n)]
