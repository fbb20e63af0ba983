"""What the mistakes of this chapter share."""
# or: ROOT = -1
# or: EVEN = False

import torch
import torch.distributed as dist

R = dist.ReduceOp
#: The rank that reduces, and whether all pieces are padded to one size.
ROOT = 0
EVEN = True


def combine(op, x, other):
    if op == R.MIN:
        torch.minimum(x, other, out=x)
    elif op == R.MAX:
        torch.maximum(x, other, out=x)
    elif op == R.PRODUCT:
        x *= other
    else:
        x += other


def root_and_others():
    n = dist.get_world_size()
    root = ROOT % n
    return root, [rank for rank in range(n) if rank != root]


def collect(x, op):
    """The first half of all_reduce_rooted, without a division."""
    root, others = root_and_others()
    if dist.get_rank() != root:
        dist.send(x, root)
        return
    buffer = torch.empty_like(x)
    for src in others:
        dist.recv(buffer, src)
        combine(op, x, buffer)


def hand_out(x):
    """The second half."""
    root, others = root_and_others()
    if dist.get_rank() != root:
        dist.recv(x, root)
        return
    for dst in others:
        dist.send(x, dst)


def cut(x):
    """Cut x into n pieces, which are not of one size if no padding is added."""
    n = dist.get_world_size()
    if not EVEN:
        return list(x.flatten().tensor_split(n))
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    return list(padded.tensor_split(n))


def shared(x, op):
    """The first half of all_reduce_sharded: this rank's piece, without a division."""
    pieces = cut(x)
    mine = torch.empty_like(pieces[dist.get_rank()])
    dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    return mine


def gathered(mine, x):
    """The second half: all elements of the result."""
    n, size = dist.get_world_size(), -(-x.numel() // dist.get_world_size())
    lengths = [len(piece) for piece in cut(x)]
    padded = x.new_zeros(size)
    padded[: len(mine)] = mine
    parts = [x.new_empty(size) for _ in range(n)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:k] for part, k in zip(parts, lengths)])[: x.numel()]


def exchanged(outgoing, incoming):
    """Send each of the other ranks a tensor, and receive one from each."""
    others = [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]
    sends = [dist.isend(outgoing(other), other) for other in others]
    for other in others:
        came = torch.empty_like(incoming(other))
        dist.recv(came, other)
        yield other, came
    for request in sends:
        request.wait()
