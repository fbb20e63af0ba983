"""This passes on gloo, and hangs on NCCL: there isend and irecv are kernels that run one after the
other, and of two neighbours each begins with the same one. Put all of a rank's messages into one
dist.batch_isend_irecv, or let odd ranks begin with the receive."""
# exercise: chain_exchange
# diagnosis: deadlock
# or: ORDER = (3, 1, 2, 0)
# or: ORDER = (1, 3, 0, 2)
# or: ORDER = (2, 0, 1, 3)
# or: ORDER = (0, 2, 3, 1)
import torch
import torch.distributed as dist

#: In which order a rank starts to send forward, receive what comes forward, send backward, and
#: receive what comes backward.
ORDER = (2, 1, 0, 3)


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    starts = [
        lambda: dist.isend(forward, rank + 1) if rank < n - 1 else None,
        lambda: dist.irecv(before, rank - 1) if rank > 0 else None,
        lambda: dist.isend(backward, rank - 1) if rank > 0 else None,
        lambda: dist.irecv(after, rank + 1) if rank < n - 1 else None,
    ]
    for request in [starts[i]() for i in ORDER]:
        if request is not None:
            request.wait()
    return before, after
