# exercise: ring_all_reduce
# diagnosis: exception
# hint: modulo n
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.view(-1).tensor_split(n)
    for s in range(n - 1):
        mine = chunks[rank + s + 1]
        came = torch.empty_like(mine)
        request = dist.isend(chunks[rank + s], (rank - 1) % n)
        dist.recv(came, (rank + 1) % n)
        request.wait()
        mine += came
    for s in range(n - 1):
        request = dist.isend(chunks[rank + s - 1], (rank - 1) % n)
        dist.recv(chunks[rank + s], (rank + 1) % n)
        request.wait()
