# exercise: barrier
# diagnosis: none
# Every receive is posted before the first send, and waited for in its round.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = [1 << k for k in range(n.bit_length()) if 1 << k < n]
    coming = [dist.irecv(torch.empty(1), (rank - step) % n) for step in steps]
    going = []
    for step, request in zip(steps, coming, strict=True):
        going.append(dist.isend(torch.ones(1), (rank + step) % n))
        request.wait()
    for request in going:
        request.wait()
