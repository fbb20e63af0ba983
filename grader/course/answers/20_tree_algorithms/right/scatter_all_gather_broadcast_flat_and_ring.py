# exercise: scatter_all_gather_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    shares = x.view(-1).tensor_split(n)
    if rank == src:
        requests = [dist.isend(shares[r], r) for r in range(n) if r != src]
        for request in requests:
            request.wait()
    else:
        dist.recv(shares[rank], src)
    for s in range(n - 1):
        request = dist.isend(shares[(rank - s) % n], (rank + 1) % n)
        dist.recv(shares[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
