# exercise: quantized_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


def quantized_all_reduce(x):
    """One scale for the whole of x; chunks of equal length, the last ones padded with zeros."""
    n, rank = dist.get_world_size(), dist.get_rank()
    size = (x.numel() + n - 1) // n
    rows = torch.zeros(n, size)
    rows.view(-1)[: x.numel()] = x.view(-1)
    if n == 1 or size == 0:
        return

    def to_bytes(values, divisor):
        q = torch.empty(values.numel() + 4, dtype=torch.int8)
        q[4:] = (values / divisor).round()
        q[:4] = divisor.reshape(1).view(torch.int8)
        return q

    def from_bytes(q):
        return q[4:].float() * q[:4].contiguous().view(torch.float32)

    tiny = torch.finfo(torch.float32).tiny
    scale = (rows.abs().max() / 127).clamp(min=tiny)
    total = from_bytes(to_bytes(rows[rank], scale))
    for step in range(1, n):
        to, source = (rank + step) % n, (rank - step) % n
        request = dist.isend(to_bytes(rows[to], scale), to)
        q = torch.empty(size + 4, dtype=torch.int8)
        dist.recv(q, source)
        request.wait()
        total += from_bytes(q)
    done = to_bytes(total, (total.abs().max() / 127).clamp(min=tiny))
    rows[rank] = from_bytes(done)
    for step in range(1, n):
        request = dist.isend(done, (rank + step) % n)
        q = torch.empty(size + 4, dtype=torch.int8)
        dist.recv(q, (rank - step) % n)
        request.wait()
        rows[(rank - step) % n] = from_bytes(q)
    x.copy_(rows.view(-1)[: x.numel()].view_as(x))
