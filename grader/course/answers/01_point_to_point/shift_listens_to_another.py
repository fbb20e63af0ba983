"""What is sent to (rank + k) % n comes from (rank − k) % n, and some ranks wait for another one. Where
rank − k is below 0, % n gives the right rank, and no change of sign does.
"""
# exercise: shift
# diagnosis: deadlock
# or: WHERE = "abs(rank - k)"
# or: WHERE = "k - rank"
import torch
import torch.distributed as dist

WHERE = "abs(rank - k % n)"


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    source = {
        "abs(rank - k % n)": abs(rank - k % n),
        "abs(rank - k)": abs(rank - k) % n,
        "k - rank": (k - rank) % n,
    }[WHERE]
    dist.recv(y, source)
    request.wait()
    return y
