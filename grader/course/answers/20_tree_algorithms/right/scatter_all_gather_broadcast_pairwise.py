# exercise: scatter_all_gather_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    """Each rank sends its own share to each of the others."""
    rank, n = dist.get_rank(), dist.get_world_size()
    shares = list(x.view(-1).tensor_split(n))
    if rank == src:
        for r in range(n):
            if r != src:
                dist.send(shares[r], r)
    else:
        dist.recv(shares[rank], src)
    requests = [dist.irecv(shares[r], r) for r in range(n) if r != rank]
    requests += [dist.isend(shares[rank], r) for r in range(n) if r != rank]
    for request in requests:
        request.wait()
