"""What the mistakes of this chapter share."""
# or: STYLE = "rounded bounds"
# or: STYLE = "rounded up"
# or: STYLE = "last takes the rest"
# or: OWNER_DIVIDES = True
# or: OWNER_DIVIDES = True; STYLE = "rounded bounds"
# or: OWNER_DIVIDES = True; STYLE = "rounded up"
# or: OWNER_DIVIDES = True; STYLE = "last takes the rest"
import torch
import torch.distributed as dist

STYLE = "tensor_split"
#: Whether a chunk is divided by its owner, before the all-gather, and not all of x at the end.
OWNER_DIVIDES = False


def cut(x, n):
    """Cut x into n chunks, which differ where n does not divide the length."""
    flat, length = x.view(-1), x.numel()
    if STYLE == "rounded bounds":
        bounds = [i * length // n for i in range(n + 1)]
    elif STYLE == "rounded up":
        bounds = [min(i * -(-length // n), length) for i in range(n + 1)]
    elif STYLE == "last takes the rest":
        bounds = [i * (length // n) for i in range(n)] + [length]
    else:
        return flat.tensor_split(n)
    return [flat[begin:end] for begin, end in zip(bounds, bounds[1:])]


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def own(op, chunk):
    """Finish the chunk that the all-gather begins with."""
    if op == dist.ReduceOp.AVG and OWNER_DIVIDES:
        chunk.div_(dist.get_world_size())


def finish(op, x):
    if op == dist.ReduceOp.AVG and not OWNER_DIVIDES:
        x.div_(dist.get_world_size())
