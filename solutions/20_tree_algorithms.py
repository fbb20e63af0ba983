# %% [markdown]
# # 20 · Tree algorithms

# %%
import math

import torch
import torch.distributed as dist

from grader import check, hint, predict, replay, run, simulate, timeline

# %%
def combine(mine, came, op):
    """Reduce what came into mine, in place; AVG is a sum here, divided later."""
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def swap(out, into, peer):
    """Send one tensor to a rank and receive another from it, at the same time."""
    request = dist.isend(out, peer)
    dist.recv(into, peer)
    request.wait()


# %%
def recursive_doubling_all_reduce(x: torch.Tensor, op) -> None:
    """Everyone's x becomes the reduction of all x, in log₂ n rounds."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)  # the largest power of two up to n
    came = torch.empty_like(x)
    if rank >= power:  # stands aside
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(x, came, op)
    step = 1
    while step < power:
        swap(x, came, rank ^ step)
        combine(x, came, op)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank + power < n:
        dist.send(x, rank + power)
    ### END SOLUTION


check(recursive_doubling_all_reduce)

# %%
def halving_doubling_all_reduce(x: torch.Tensor, op) -> None:
    """Everyone's x becomes the reduction of all x, half of it at a time."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(x, came, op)
    mine, done, step = x.view(-1), [], 1
    while step < power:  # reduce-scatter: what is mine gets shorter
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        swap(given, came, rank ^ step)
        combine(kept, came, op)
        done.append((step, kept, given))
        mine = kept
        step *= 2
    if op == dist.ReduceOp.AVG:
        mine /= n
    for step, kept, given in reversed(done):  # all-gather: the same way back
        swap(kept, given, rank ^ step)
    if rank + power < n:
        dist.send(x, rank + power)
    ### END SOLUTION


check(halving_doubling_all_reduce)

# %%
def pipelined_broadcast(x: torch.Tensor, src: int, pieces: int) -> None:
    """Everyone's x becomes that of src, which sends it down the chain in pieces."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
    ### END SOLUTION


check(pipelined_broadcast)

# %%
def best_pieces(n: int, nbytes: int, alpha: float, beta: float) -> int:
    """The number of pieces that makes a pipelined broadcast fastest."""
    ### BEGIN SOLUTION
    if n <= 2:
        return 1

    def seconds(k):
        return (n - 2 + k) * (alpha + nbytes * beta / k)

    root = math.floor(math.sqrt((n - 2) * nbytes * beta / alpha))
    return min((max(1, min(k, nbytes)) for k in (root, root + 1)), key=seconds)
    ### END SOLUTION


check(best_pieces)

# %%
def scatter_all_gather_broadcast(x: torch.Tensor, src: int) -> None:
    """Everyone's x becomes that of src: first a share for each rank, then an all-gather."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    flat = x.view(-1)
    edges = [i * len(flat) // n for i in range(n + 1)]
    low, high = 0, n  # the scatter: a tree over the places low, …, high - 1
    while high - low > 1:
        middle = (low + high + 1) // 2
        upper = flat[edges[middle] : edges[high]]
        if v == low:
            dist.send(upper, (middle + src) % n)
        elif v == middle:
            dist.recv(upper, (low + src) % n)
        low, high = (low, middle) if v < middle else (middle, high)
    shares = flat.tensor_split(edges[1:-1])
    for s in range(n - 1):  # the all-gather: a ring
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()
    ### END SOLUTION


check(scatter_all_gather_broadcast)

# %%
def double_trees(n: int) -> tuple[list, list]:
    """The parent of each rank in two trees, None for the root."""
    ### BEGIN SOLUTION
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    two = [None if parent is None else n - 1 - parent for parent in reversed(one)]
    return one, two
    ### END SOLUTION


check(double_trees)
