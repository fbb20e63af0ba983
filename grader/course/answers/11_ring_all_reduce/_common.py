"""What the mistakes of this chapter share."""
# or: STYLE = "rounded bounds"
# or: STYLE = "rounded up"
# or: STYLE = "last takes the rest"
import torch
import torch.distributed as dist

STYLE = "tensor_split"


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
