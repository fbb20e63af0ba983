# exercise: all_gather
# diagnosis: unwaited_request
# hint: every one before you return
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for r in range(n):
        if r != rank:
            send = dist.isend(x, r)
            receive = dist.irecv(parts[r], r)
            receive.wait()
    return parts
