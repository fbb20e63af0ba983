# exercise: ring_all_reduce
# diagnosis: none
# Pads to n equal chunks, the rows of a matrix.
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = -(-x.numel() // n)
    rows = x.new_zeros(n, size)
    rows.view(-1)[: x.numel()] = x.reshape(-1)
    right, left = (rank + 1) % n, (rank - 1) % n
    buffer = x.new_empty(size)
    for step in range(2 * (n - 1)):
        own = rank if step < n - 1 else rank + 1
        out, into = rows[(own - step - 1) % n], rows[(own - step - 2) % n]
        if step >= n - 1:
            out, into = rows[(rank - step + n - 1) % n], rows[(rank - step + n - 2) % n]
        sending = dist.isend(out, right)
        dist.recv(buffer, left)
        sending.wait()
        if step >= n - 1:
            into.copy_(buffer)
        elif op == ReduceOp.MIN:
            into.copy_(torch.minimum(into, buffer))
        elif op == ReduceOp.MAX:
            into.copy_(torch.maximum(into, buffer))
        elif op == ReduceOp.PRODUCT:
            into.mul_(buffer)
        else:
            into.add_(buffer)
    if op == ReduceOp.AVG:
        rows /= n
    x.copy_(rows.view(-1)[: x.numel()].view(x.shape))
