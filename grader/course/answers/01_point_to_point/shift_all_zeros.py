"""The result is all zeros, and no rank's x. Return the tensor that you receive into; and after
irecv it holds nothing of the message until wait() has returned, so do not read or copy it before
that.
"""
# exercise: shift
# diagnosis: wrong_value
# Where it is read too early depends on the moment; here it is never filled.
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y, came = torch.zeros_like(x), torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    dist.recv(came, (rank - k) % n)
    request.wait()
    return y
