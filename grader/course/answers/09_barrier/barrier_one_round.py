# exercise: barrier
# diagnosis: not_synchronized
# hint: A round is missing
# says: rank 0 can leave before rank 1 has entered: no chain of messages leads from rank 1 to rank 0
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    request = dist.isend(torch.zeros(1), (rank + 1) % n)
    dist.recv(torch.zeros(1), (rank - 1) % n)
    request.wait()
