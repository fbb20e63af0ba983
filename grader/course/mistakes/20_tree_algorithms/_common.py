"""The right answers of this chapter, in which most of its mistakes change a part."""
# or: HALVES = "len // 2"
# or: ASIDE = "the first of each pair"
import math

import torch
import torch.distributed as dist

HALVES = "tensor_split"
ASIDE = "the last"
FAR = False


def largest_power(n):
    return 1 << (n.bit_length() - 1)


def folded(n):
    """Return the ranks that stand aside, each with the one that takes its x in."""
    power = largest_power(n)
    if ASIDE == "the last":
        return {rank: rank - power for rank in range(power, n)}
    pairs = [(2 * i, 2 * i + 1) for i in range(n - power)]
    return dict(pairs if ASIDE == "the first of each pair" else [pair[::-1] for pair in pairs])


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def divide(op, mine, n):
    if op == dist.ReduceOp.AVG:
        mine /= n


def exchange(out, into, other):
    request = dist.isend(out, other)
    dist.recv(into, other)
    request.wait()


def fold(x, op, aside):
    """Take in the x of a rank that stands aside, or hand over this rank's."""
    rank = dist.get_rank()
    for other, taker in aside.items():
        if rank == other:
            dist.send(x, taker)
        elif rank == taker:
            came = torch.empty_like(x)
            dist.recv(came, other)
            combine(op, x, came)


def tell(x, op, aside):
    """Hand the result to a rank that stood aside, or get it."""
    rank = dist.get_rank()
    for other, taker in aside.items():
        if rank == other:
            dist.recv(x, taker)
        elif rank == taker:
            dist.send(x, other)


def steps_of(power):
    steps = [1 << k for k in range(power.bit_length() - 1)]
    return steps[::-1] if FAR else steps


def doubling(x, op, rank, other_at, power):
    """Exchange the whole of x in each step."""
    came = torch.empty_like(x)
    for step in steps_of(power):
        exchange(x, came, other_at(step))
        combine(op, x, came)
    divide(op, x, dist.get_world_size())


def halved(mine):
    if HALVES == "tensor_split":
        return mine.tensor_split(2)
    return mine[: len(mine) // 2], mine[len(mine) // 2 :]


def halve(x, op, rank, other_at, power):
    """Reduce-scatter; return the share that this rank ends with, and what it has done."""
    mine, done = x.view(-1), []
    for step in steps_of(power):
        low, high = halved(mine)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, other_at(step))
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    return mine, done


def gather(op, other_at, done):
    for step, kept, given in reversed(done):
        exchange(kept, given, other_at(step))


def halving_and_doubling(x, op, rank, other_at, power):
    mine, done = halve(x, op, rank, other_at, power)
    divide(op, mine, dist.get_world_size())
    gather(op, other_at, done)


def among_a_power(x, op, algorithm):
    """Fold, let a power of two of ranks run an algorithm, and tell the others."""
    rank, n = dist.get_rank(), dist.get_world_size()
    power, aside = largest_power(n), folded(n)
    fold(x, op, aside)
    if rank not in aside:
        others = [other for other in range(max(n, power)) if other not in aside]
        number = others.index(rank)
        algorithm(x, op, number, lambda step: others[number ^ step], power)
    tell(x, op, aside)


def recursive_doubling_all_reduce(x, op):
    among_a_power(x, op, doubling)


def halving_doubling_all_reduce(x, op):
    among_a_power(x, op, halving_and_doubling)


CUT = "tensor_split"
BY = "place"


def place_of(rank, src, n):
    return (rank - src) % n


def pieces_of(x, pieces):
    return x.view(-1).tensor_split(max(1, min(pieces, x.numel())))


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = place_of(rank, src, n)
    requests = []
    for piece in pieces_of(x, pieces):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()


def shares_of(x, n):
    flat, length = x.view(-1), x.numel()
    if CUT == "tensor_split":
        return flat.tensor_split(n)
    return [flat[i * length // n : (i + 1) * length // n] for i in range(n)]


def number_of(rank, src, n):
    """Return the share that a rank gets: that of its place after src, or of its rank."""
    return place_of(rank, src, n) if BY == "place" else rank


def scatter(shares, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(shares[number_of(rank, src, n)], src)
        return
    for other in range(n):
        if other != src:
            dist.send(shares[number_of(other, src, n)], other)


def all_gather(shares, src, steps):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = number_of(rank, src, n)
    for s in range(steps):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()


def scatter_all_gather_broadcast(x, src):
    n = dist.get_world_size()
    shares = shares_of(x, n)
    scatter(shares, src)
    all_gather(shares, src, n - 1)


def seconds(n, nbytes, alpha, beta, pieces):
    return (n - 2 + pieces) * (alpha + nbytes * beta / pieces)


def nearest(root, n, nbytes, alpha, beta):
    """Return the better one of the whole numbers beside the root."""
    low = math.floor(root)
    candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
    return min(candidates, key=lambda k: seconds(n, nbytes, alpha, beta, k))
