# exercise: ring_all_gather
# diagnosis: unwaited_request
# hint: every one before you return
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        send = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        receive = dist.irecv(parts[(rank - s - 1) % n], (rank - 1) % n)
        receive.wait()
    return parts
