# exercise: tutorial_all_reduce
# diagnosis: none
# A new tensor for what comes, in each step, and the result is the sum from the beginning.
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    recv[...] = send
    passing = send
    for _ in range(1, n):
        coming = torch.empty_like(send)
        operations = [
            dist.P2POp(dist.isend, passing, (rank + 1) % n),
            dist.P2POp(dist.irecv, coming, (rank - 1) % n),
        ]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
        recv += coming
        passing = coming
