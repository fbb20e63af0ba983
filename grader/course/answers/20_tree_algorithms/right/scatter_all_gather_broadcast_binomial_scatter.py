# exercise: scatter_all_gather_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    """A binomial scatter of padded shares, and a ring in the other direction."""
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    size = -(-x.numel() // n)
    padded = torch.zeros(size * n, dtype=x.dtype)
    padded[: x.numel()] = x.flatten()
    mask = 1
    while mask < n:
        if v & mask:
            end = min(v + mask, n)
            dist.recv(padded[v * size : end * size], (v - mask + src) % n)
            break
        mask *= 2
    mask //= 2
    while mask:
        if v + mask < n:
            end = min(v + 2 * mask, n)
            dist.send(padded[(v + mask) * size : end * size], (v + mask + src) % n)
        mask //= 2
    rows = padded.view(n, size)
    for s in range(n - 1):
        request = dist.isend(rows[(v + s) % n], (rank - 1) % n)
        dist.recv(rows[(v + s + 1) % n], (rank + 1) % n)
        request.wait()
    x.copy_(padded[: x.numel()].view_as(x))
