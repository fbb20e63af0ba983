# exercise: ring_all_reduce
# diagnosis: nondeterministic
# hint: summed once
# Small pieces travel, but they are gathered, and everybody begins with its own.
import torch
import torch.distributed as dist


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = x.view(-1).tensor_split(n)
    going = [piece.clone() for piece in pieces]
    for _ in range(n - 1):
        for i, piece in enumerate(pieces):
            came = torch.empty_like(piece)
            request = dist.isend(going[i], (rank + 1) % n)
            dist.recv(came, (rank - 1) % n)
            request.wait()
            combine(op, piece, came)
            going[i] = came
    if op == dist.ReduceOp.AVG:
        x /= n
