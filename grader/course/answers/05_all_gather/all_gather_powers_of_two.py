"""rank ^ step finds a partner for every rank only if the number of ranks is a power of two. With 3
ranks, 1 ^ 2 is 3, and there is no rank 3. Send to (rank + step) % n and receive from (rank − step)
% n, which exist for every n.
"""
# exercise: all_gather
# diagnosis: exception
# or: WAY = "pairs"
# or: WAY = "pairs, received first"
import torch
import torch.distributed as dist

WAY = "doubling"


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    if WAY != "doubling":
        for step in range(1, n):
            partner = rank ^ step
            if WAY == "pairs":
                sending = dist.isend(x, partner)
                receiving = dist.irecv(parts[partner], partner)
            else:
                receiving = dist.irecv(parts[partner], partner)
                sending = dist.isend(x, partner)
            sending.wait()
            receiving.wait()
        return parts
    step = 1
    while step < n:
        partner = rank ^ step
        mine, theirs = rank // step * step, partner // step * step
        request = dist.isend(torch.stack(parts[mine : mine + step]), partner)
        came = torch.stack(parts[theirs : theirs + step])
        dist.recv(came, partner)
        request.wait()
        parts[theirs : theirs + step] = list(came)
        step *= 2
    return parts
