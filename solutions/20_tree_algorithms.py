# %% [markdown]
# # 20 · Tree algorithms
#
# **Part two** begins here. Your ring of chapter [11](11_ring_all_reduce.ipynb) sends as little as an
# all-reduce can. Now it is to run on 512 GPUs, and one of the tensors to sum is the gradient of a layer
# norm: 4096 numbers, 16 KiB. The network carries them in less than a microsecond. The ring takes ten
# milliseconds, 1022 messages one after the other, and there are hundreds of such tensors in a step.
#
# **You will learn** the algorithms that libraries use where a ring is too slow: all-reduces that take
# $\log_2 n$ rounds, broadcasts in pieces, and the two trees of NCCL. You will let them race on simulated
# clusters, and find out which of them wins, where, and why.
#
# **You need** chapters [11](11_ring_all_reduce.ipynb) (the ring, `isend`, the same bits everywhere) and
# [13](13_cost_models.ipynb) ($\alpha$ and $\beta$), and the tree of chapter [02](02_broadcast.ipynb).
#
# **Time:** 4 hours, and 6 exercises. They come in pairs, so there are good places to stop.

# %%
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cloudpickle
import torch
import torch.distributed as dist

from grader import check, hint, predict, replay, run, simulate, timeline
from grader.simulation.clusters import Flat, Nodes

# %% [markdown]
# ## A thousand latencies
#
# In this chapter a message costs $\alpha = 10$ µs, and $\beta$ is one second for 25 GB. A ring takes
# $2(n-1)$ rounds, in each of which a rank sends one $n$-th of the tensor.
#
# **Predict:** 16 KiB on 512 ranks. How much of the ring's time is latency? And of a gigabyte?

# %%
predict("")

# %%
ALPHA, BETA = 10e-6, 1 / 25e9

for nbytes in (16 * 1024, 2**20, 64 * 2**20, 2**30):
    n = 512
    latency, transfer = 2 * (n - 1) * ALPHA, 2 * (n - 1) / n * nbytes * BETA
    print(
        f"{nbytes:13,} bytes: {1e3 * (latency + transfer):7.2f} ms,"
        f" of which latency {latency / (latency + transfer):6.1%}"
    )

# %% [markdown]
# Up to a megabyte the ring does nothing but wait. Larger buckets help, as in chapter
# [15](15_data_parallel.ipynb), but not everywhere: a tensor-parallel layer needs its sum before it can go
# on, and has nothing to put into a bucket with it. And the price grows with the number of ranks.
#
# A tree needs $2\lceil\log_2 n\rceil$ rounds: 18 instead of 1022. Can it be done in half of that?
#
# ## Everybody exchanges
#
# In a reduce on a tree, half of the ranks have nothing to do after the first round, and on the way down
# they wait again. Suppose that instead *both* ranks of a pair send what they have, and both add. Here are
# four ranks with letters in place of numbers. In step 1 rank $r$ exchanges with its neighbour in the pairs
# (0, 1) and (2, 3), in step 2 with the rank two further on.
#
# **Predict:** what does each rank hold after step 1, and after step 2?

# %%
predict("")

# %%
held = ["A", "B", "C", "D"]
for step in (1, 2):
    partners = [rank ^ step for rank in range(4)]
    held = [f"{held[min(r, p)]}+{held[max(r, p)]}" for r, p in enumerate(partners)]
    print(f"step {step}, partners {partners}:", *(f"{text:8}" for text in held))

# %% [markdown]
# `rank ^ step` flips one bit of the rank's number: 0 (`00`) and 1 (`01`) differ in bit 0, 0 (`00`) and
# 2 (`10`) in bit 1. If you are my partner, then I am yours.
#
# ![Eight ranks in a row, three times below each other. In step 1 each rank exchanges with its neighbour and then holds a sum of two, in step 2 with the rank at distance two and then holds a sum of four, in step 3 at distance four, and then all hold the sum of eight](../imgs/recursive_doubling.png)
#
# With each step the number of ranks in a sum doubles, and the distance as well. This is **recursive
# doubling** ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe it
# for MPICH, with everything up to the folding below). It takes $\log_2 n$ rounds, each with the whole
# tensor.
#
# ### The same bits?
#
# Chapter 11 warned of ranks that add up in an order of their own. Here rank 0 computes its own part plus
# what came from rank 1, and rank 1 the other way round.
#
# **Predict:** do all four ranks get the same bits for $10^8$, $-10^8$, $1$ and $10^{-3}$? And is it the
# right sum?

# %%
predict("")

# %%
parts = [torch.tensor(value) for value in (1e8, -1e8, 1.0, 1e-3)]
for step in (1, 2):
    parts = [parts[rank] + parts[rank ^ step] for rank in range(4)]
print("recursive doubling:", [part.item() for part in parts])

parts = [torch.tensor(value) for value in (1e8, 1.0, -1e8, 1e-3)]
for step in (1, 2):
    parts = [parts[rank] + parts[rank ^ step] for rank in range(4)]
print("in another order:  ", [part.item() for part in parts])

# %% [markdown]
# The results depend on the order of the ranks, as every sum in floating point does. But all ranks agree:
# $a+b$ and $b+a$ have the same bits (addition is *commutative*, it is just not associative), and each rank
# adds up the same pairs of pairs.
#
# ### When n is no power of two
#
# Take six ranks. In step 2 rank 4 would exchange with rank 6, which does not exist. So let some ranks
# stand aside: with $p$ the largest power of two that is not above $n$, here 4, there are $n - p$ ranks
# too many.
#
# | | ranks 0 and 1 | ranks 2 and 3 | ranks 4 and 5 |
# |---|---|---|---|
# | fold | receive an x and add it | | send their x to ranks 0 and 1 |
# | exchange | with 1 and 2, among four | among four | stand aside |
# | tell | send the result | | receive it |
#
# **Predict:** how many rounds does that take on 6 ranks, and on 7? And on 8?
#
# ## Exercise: recursive doubling
#
# In place, for any number of ranks, all five operations, and any length. Where $n$ is a power of two it
# must take exactly $\log_2 n$ rounds; elsewhere $\lfloor\log_2 n\rfloor + 2$ at most. Who stands aside is
# up to you. Remember that a tensor that `isend` is sending must not be written to.
#
# Here are two helpers that you may use, since you have written both of them before.

# %%
def combine(mine, came, op):
    """Reduce what came into mine, in place. For AVG it adds, and the division is still to come."""
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def swap(out, into, peer):
    """Send one tensor to a rank while another comes from it."""
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


doubling_works = check(recursive_doubling_all_reduce)
doubling_works

# %% [markdown]
# Step through your own run. The names say what is in each cell.

# %%
if doubling_works:
    shown = replay(recursive_doubling_all_reduce, 6)
else:
    shown = None
shown

# %% [markdown]
# Now the gradient of the layer norm, on the 512 ranks of the beginning. **Predict** first: how many
# microseconds?

# %%
predict("")

# %%
def summed(all_reduce, nbytes):
    """Sum a tensor of ones by an algorithm, and say whether the result is right."""
    x = torch.ones(nbytes // 4)
    all_reduce(x, dist.ReduceOp.SUM)
    return bool((x == dist.get_world_size()).all())


if doubling_works:
    done = simulate(summed, 512, recursive_doubling_all_reduce, 16 * 1024, alpha=ALPHA, beta=BETA)
    print(done, "and right everywhere:", all(done))

# %% [markdown]
# Nine rounds instead of 1022: 96 µs, a hundred times faster than the ring.
#
# $$t \;=\; \log_2 n \,(\alpha + S\beta)$$
#
# **Predict:** from which size on would the ring be faster again? (What does each of them send in all, in
# whole tensors?)

# %%
predict("")

# %%
levels, n = 9, 512
size = (2 * (n - 1) - levels) * ALPHA / ((levels - 2 * (n - 1) / n) * BETA)
print(f"both take as long at {size / 1e6:.1f} MB")

# %% [markdown]
# That is a long way to go with nine times the bytes. There is something better in between.
#
# ## Half of it each
#
# For a large tensor, nine times $S\beta$ is far too much: the ring sends less than $2S$. Where is the waste?
# After step 1, ranks 0 and 1 hold *the same* sum. Both have received the other's whole tensor, and both have
# added all of it. They could share that work: rank 0 adds up the first half and rank 1 the second.
#
# So each sends only the half that the *other* keeps. In step 2 a rank has half a tensor to care for, and
# shares that half with its next partner, and so on. Letters are elements here: four ranks, four elements.
#
# **Predict:** which elements does each rank care for after step 1, and after step 2?

# %%
predict("")

# %%
mine = [list("abcd") for _ in range(4)]
for step in (1, 2):
    for rank in range(4):
        half = len(mine[rank]) // 2
        mine[rank] = mine[rank][half:] if rank & step else mine[rank][:half]
    print(f"after step {step}:", *(f"rank {r}: {''.join(m):4}" for r, m in enumerate(mine)))

# %% [markdown]
# After $\log_2 n$ steps each rank holds the whole sum of one $n$-th: a **reduce-scatter** by *recursive
# halving*. Which rank has which element may look odd (rank 1 has c and not b), but it does not matter:
# the same exchanges **backwards** are an **all-gather**, in which what a rank has doubles from step to step.
#
# ![Four ranks, four elements, five rows. Step 1: partners at distance one exchange halves and add. Step 2: partners at distance two exchange quarters, and each rank has one whole sum. Step 3: the same partners exchange quarters, which replace what is there. Step 4: partners at distance one exchange halves, and all are complete](../imgs/halving_doubling.png)
#
# The algorithm is [Rabenseifner's](https://doi.org/10.1177/1094342005051521). **Predict** its cost: how
# much does one of 8 ranks send, in parts of the tensor, and in how many rounds?
#
# ## Exercise: halving and doubling
#
# In place, any number of ranks, any length. For powers of two: $2\log_2 n$ rounds, and no rank sends more
# than $2(n-1)\lceil \mathrm{len}/n\rceil$ elements. Elsewhere fold, as before: $2\lfloor\log_2 n\rfloor + 2$
# rounds at most.
#
# The first partner may be the nearest rank or the farthest. Halves of an odd number of elements differ by
# one, and a half may be empty.

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


halving_works = check(halving_doubling_all_reduce)
halving_works

# %%
if halving_works:
    shown = replay(halving_doubling_all_reduce, 4)
else:
    shown = None
shown

# %% [markdown]
# A rank sends a half, a quarter, an eighth, …, and then the same again in the opposite order: $(n-1)/n$ of
# the tensor in each phase, exactly as much as on the ring.
#
# $$t \;=\; 2\log_2 n\,\alpha + 2\,\frac{n-1}{n}\,S\beta$$
#
# ## The race of the all-reduces
#
# Four algorithms, on 64 simulated ranks. The tree is that of chapter 11, up to rank 0 and down again.
#
# Simulated ranks really hold their tensors, and 64 of them with 64 MiB each would fill 4 GiB. But the
# model knows only the product $S\beta$: with a 1024th of the bytes, each of which costs 1024 times as much,
# every message takes as long as before. That is how the larger sizes are run here.
#
# **Predict:** who wins at 1 KiB, at 1 MiB, and at 64 MiB?

# %%
predict("")

# %%
def tree_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    steps = [2**i for i in range(n) if 2**i < n]
    for s in steps:  # up: a rank that has sent is done
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(came, rank + s)
            combine(x, came, op)
    for s in reversed(steps):  # down
        if rank % (2 * s) == 0 and rank + s < n:
            dist.send(x, rank + s)
        elif rank % (2 * s) == s:
            dist.recv(x, rank - s)


def plain_ring(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(n)
    buffer = torch.empty_like(chunks[0])
    for step in range(2 * (n - 1)):
        out, mine = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        came = buffer[: len(mine)] if step < n - 1 else mine
        request = dist.isend(out, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        if step < n - 1:
            combine(mine, came, op)


def flat(shrink=1):
    """All pairs of ranks have the same connection; bytes are shrunk, and cost as much more."""
    return Flat(ALPHA, BETA * shrink)


def microseconds(all_reduce, n, nbytes, cluster=flat):
    shrink = max(1, nbytes // 2**16)
    done = simulate(summed, n, all_reduce, nbytes // shrink, cluster=cluster(shrink))
    assert all(done)
    return 1e6 * done.seconds


def all_reduce_race(n, cluster=flat, **runners):
    names = list(runners)
    print(f"{n} ranks, µs " + "".join(f"{name:>12}" for name in names))
    for nbytes, size in ((2**10, "1 KiB"), (2**20, "1 MiB"), (64 * 2**20, "64 MiB")):
        times = [microseconds(runner, n, nbytes, cluster) for runner in runners.values()]
        cells = (f"{t:11,.0f}{'*' if t == min(times) else ' '}" for t in times)
        print(f"{size:>12} " + "".join(cells).rstrip())


if doubling_works and halving_works:
    algorithms = {
        "tree": tree_all_reduce,
        "ring": plain_ring,
        "doubling": recursive_doubling_all_reduce,
        "halving": halving_doubling_all_reduce,
    }
    all_reduce_race(64, **algorithms)

# %% [markdown]
# A star marks the winner of a row. For small tensors recursive doubling, for all others halving and
# doubling: the ring never wins. On this network and with this number of ranks it cannot: it sends as much
# as halving and doubling do, in more messages. Here is the same for 512 ranks, as curves:
#
# ![Seconds over the size of the tensor, both logarithmic, for 512 ranks. Recursive doubling is lowest up to about 300 kilobytes, halving and doubling from there on. The ring begins a hundred times higher and meets halving and doubling beyond a gigabyte. The tree stays above recursive doubling everywhere](../imgs/all_reduce_curves.png)
#
# So why is the ring still in every library? Because two things were too kind here.
#
# **1. The number of ranks was a power of two.** Predict what folding costs a large tensor on 96 ranks, then
# look:

# %%
if doubling_works and halving_works:
    all_reduce_race(96, ring=plain_ring, halving=halving_doubling_all_reduce)

# %% [markdown]
# A rank that takes in another one receives the whole tensor first, and sends the whole result in the end:
# $2S\beta$ more. At 64 MiB the ring is faster again, by a third, and the larger the tensor, the nearer it comes
# to half the time. A ring does not care what $n$ is.
#
# **2. All connections were equal.** Real ranks share nodes. Here is a cluster of nodes with eight ranks
# and one network card each: inside a node a message is ten times as fast as between nodes, and the eight
# ranks have to share the card. Two jobs run on it. In the first, ranks 0 to 7 are on one node, 8 to 15 on
# the next, and so on. For the second, the scheduler has dealt the ranks out one at a time, like playing
# cards: rank $r$ of 64 is on node $r \bmod 8$.
#
# `halving_doubling_all_reduce` may begin with the nearest partner or with the farthest. On a flat network
# that makes no difference.
#
# **Predict:** and here? Which of its messages are large, and which of them leave the node, in each of the
# two jobs? And what becomes of the ring?

# %%
predict("")

# %%
def by_node(shrink=1, order=()):
    """Nodes of eight ranks that share one network card."""
    return Nodes(8, ALPHA / 10, BETA / 10 * shrink, ALPHA, BETA * shrink, order=order)


def dealt_out(shrink=1):
    """The same nodes, where ranks 0, 8, 16, … share the first, and 1, 9, 17, … the second."""
    return by_node(shrink, tuple(r for node in range(8) for r in range(node, 64, 8)))


if doubling_works and halving_works:
    del algorithms["tree"]
    for cluster in (by_node, dealt_out):
        print(cluster.__name__)
        all_reduce_race(64, cluster, **algorithms)

# %% [markdown]
# The largest messages of halving and doubling are those of the first exchange and the last. If yours begins
# with the nearest partner, three exchanges stay inside the node in the first job, and only an eighth of
# each rank's tensor goes through the card. In the second job a half, a quarter and an eighth go through it,
# from all eight ranks at the same time. (If yours begins with the farthest partner, the jobs change
# places.) The ring has one message at a time on each card in the first job, and eight in the second.
#
# So the order of the ranks can be worth more than the choice of the algorithm. A ring is easy to lay out
# well, since it needs two good neighbours for each rank. Halving needs good connections to $\log_2 n$
# partners. The next chapter makes the nodes part of the algorithm.
#
# ## From one to all, in pieces
#
# Rank 0 has read a checkpoint of 14 GB, and the other ranks of the group need it. The tree of chapter
# [02](02_broadcast.ipynb) sends it $\lceil\log_2 n\rceil$ times, one after the other: on 512 ranks nine
# times. While the first rank receives, the others wait, although the first megabytes are there long before
# the last ones.
#
# So let the ranks stand in a chain, and cut the tensor into **pieces**. Each rank passes a piece on while
# the next one is coming in.
#
# ![Five ranks from top to bottom, time from left to right. Piece 0 moves down the chain by one rank in each round, and pieces 1, 2 and 3 follow one round apart. Between the first round and the last, most links are busy in every round](../imgs/pipelined_chain.png)
#
# **Predict:** four pieces, five ranks. How many rounds, and how long is one of them, compared with the
# message of the tree? And for $k$ pieces on $n$ ranks?

# %%
predict("")

# %% [markdown]
# ## Exercise: a pipelined broadcast
#
# The chain is `src`, `src + 1`, … modulo $n$, and its last rank passes nothing on. Send
# $k = \max(1, \min(\texttt{pieces}, \mathrm{len}))$ pieces over each of its links, of about the same size,
# in $n - 2 + k$ rounds. (A tensor without elements is one empty piece: the receiver cannot know that nothing
# will come.) A rank that receives a piece, sends it on and waits is too slow: it must do both at once.

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


pipeline_works = check(pipelined_broadcast)
pipeline_works

# %% [markdown]
# A timeline shows the slope of the pipeline: when a rank waits, and when its pieces come. This one is in
# virtual time, where a message takes exactly as long as the model says.

# %%
def four_pieces():
    pipelined_broadcast(torch.zeros(4 * 2**16), 0, 4)


if pipeline_works:
    shown = timeline(simulate(four_pieces, 5, alpha=ALPHA, beta=BETA))
else:
    shown = None
shown

# %% [markdown]
# Each round carries $S/k$ bytes, so the whole takes
#
# $$t(k) \;=\; (n - 2 + k)\left(\alpha + \frac{S\beta}{k}\right).$$
#
# One piece is bad: $n-1$ whole messages in sequence. A million pieces are bad, too.
#
# **Predict:** 64 MiB on 64 ranks. About how many pieces are best?

# %%
predict("")

# %%
def broadcast_in_pieces(nbytes, pieces):
    x = torch.full((nbytes // 4,), float(dist.get_rank()))
    pipelined_broadcast(x, 0, pieces)
    return bool((x == 0).all())


if pipeline_works:
    for pieces in (1, 16, 64, 128, 256, 512):
        done = simulate(broadcast_in_pieces, 64, 2**16, pieces, alpha=ALPHA, beta=2**10 * BETA)
        print(f"{pieces:5} pieces: {1e3 * done.seconds:7.2f} ms, {done.messages:6,} messages")

# %% [markdown]
# ## Exercise: the best number of pieces
#
# Find the whole number $k$ that makes $t(k)$ least, for any $n$, $S$, $\alpha$ and $\beta$. There is at least one
# piece, and a piece has at least one byte, so there are at most `nbytes` (or 1, where there are none).
# $\alpha$ is never 0; `nbytes` and `beta` may be. On one rank or two the answer is 1: nothing is passed on there.
# Multiply the brackets out, and ask which terms depend on $k$. A root is hardly ever a whole
# number, and it is not always the nearest one that is best.

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


pieces_work = check(best_pieces)
pieces_work

# %% [markdown]
# Here is the derivation, to compare with yours. Multiplied out,
#
# $$t(k) \;=\; (n-2)\,\alpha + S\beta \;+\; k\,\alpha + \frac{(n-2)\,S\beta}{k}.$$
#
# Only the last two terms depend on $k$. One grows and the other shrinks, their product is the same for every
# $k$, and so their sum is least where they are equal:
#
# $$k^* = \sqrt{\frac{(n-2)\,S\beta}{\alpha}}, \qquad
# t(k^*) \;=\; \left(\sqrt{(n-2)\,\alpha} + \sqrt{S\beta}\right)^2.$$
#
# For large tensors that is little more than $S\beta$, half of what an all-reduce takes. Nothing can be
# faster, since every rank has to receive $S$ bytes. But the latency is that of a chain, $(n-2)\alpha$ at
# least.

# %%
if pieces_work:
    for n, nbytes in ((64, 64 * 2**20), (512, 64 * 2**20), (512, 14 * 10**9), (512, 16 * 1024)):
        k = best_pieces(n, nbytes, ALPHA, BETA)
        seconds = (n - 2 + k) * (ALPHA + nbytes * BETA / k)
        print(
            f"{n} ranks, {nbytes:14,} bytes: {k:6,} pieces, {1e3 * seconds:9.3f} ms,"
            f" of which a rank receives for {1e3 * nbytes * BETA:9.3f} ms"
        )

# %% [markdown]
# ## Scatter, then all-gather
#
# Pipelines have a number to tune, and an order of the ranks to get right. There is another way that needs
# neither. You know it from the all-reduce: make it of two collectives that share the work.
#
# The source sends each rank *another* $n$-th of the tensor. That is a **scatter**, and costs the source about
# $S\beta$. Then the ranks pass their shares around in an **all-gather**, which costs $S\beta$ once more, and
# the ring does that without a single idle link. The algorithm is known as **van de Geijn's**; MPICH uses it
# for long messages ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521);
# [Chan and others 2007](https://doi.org/10.1002/cpe.1206) derive it as a member of a family).
#
# **Predict:** how many rounds does it take if the source sends the shares one after the other? And on a
# tree, where it first sends half of the tensor to a rank that hands out that half?

# %%
predict("")

# %% [markdown]
# ## Exercise: broadcast by scatter and all-gather
#
# In place, any length, any source. No rank may send more than $2(n-1)\lceil\mathrm{len}/n\rceil$ elements, and
# no message may hold more than $\lceil n/2\rceil$ shares. How you scatter and how you gather is up to you.
# Count the ranks from the source: the rank at place $v$ is $(v + \mathrm{src}) \bmod n$.

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


scatter_works = check(scatter_all_gather_broadcast)
scatter_works

# %%
if scatter_works:
    shown = replay(scatter_all_gather_broadcast, 4)
else:
    shown = None
shown

# %% [markdown]
# With a tree for the scatter and a ring for the all-gather,
#
# $$t \;=\; \left(\lceil\log_2 n\rceil + n - 1\right)\alpha \;+\; 2\,\frac{n-1}{n}\,S\beta.$$
#
# Twice the bytes of the pipeline, and still $n-1$ latencies. (With recursive doubling in place of the ring
# there are $\log_2 n$, where $n$ is a power of two.) So it is for large tensors. The table beside your verdict is
# of 8000 bytes, and there the tree is faster; but compare the bytes that the busiest rank sends.
#
# ## Two trees
#
# Can a broadcast have both, few latencies *and* full bandwidth? Pieces can flow down a tree as well as down a
# chain, and in a binary tree the last rank is only $\log_2 n$ levels away. But a rank with two children has
# to send each piece twice, so it can take in a new one only in every second round.
#
# ![A binary tree of seven ranks. The three ranks with children are drawn bold, and send every piece twice. The four leaves are drawn dashed, and send nothing](../imgs/idle_leaves.png)
#
# **Predict:** how many of 64 ranks have children in a binary tree? What do the others send?

# %%
predict("")

# %% [markdown]
# About half of the ranks send twice as much as they receive, and the others nothing at all. So take
# **two trees** over the same ranks, and send one half of the tensor down each of them. If every rank that
# has children in one tree is a *leaf* in the other, it receives two halves and sends one half twice: as much
# as it receives. All ports are busy, all the time. That is the idea of
# [Sanders, Speck and Träff 2009](https://doi.org/10.1016/j.parco.2009.09.001), who also show that the
# messages can be scheduled so that no rank ever has two of them to receive, or two to send, in one round.
#
# ## Exercise: two trees
#
# Return two lists of parents: entry $r$ of a list is the parent of rank $r$ in that tree, and `None` for its
# root. In each tree a rank has two children at most, and no path from a rank to the root is longer than
# $\lceil\log_2 n\rceil + 1$ edges. **No rank has children in both.** $n$ is any number from 1 on. Nothing is
# sent.
#
# How many ranks with children does a binary tree need at least? Are there enough for two?

# %%
def double_trees(n: int) -> tuple[list, list]:
    """The parent of each rank in two trees, None for the root."""
    ### BEGIN SOLUTION
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    two = [None if parent is None else n - 1 - parent for parent in reversed(one)]
    return one, two
    ### END SOLUTION


trees_work = check(double_trees)
trees_work

# %%
if trees_work:
    for name, tree in zip(("first ", "second"), double_trees(8)):
        children = [[c for c, parent in enumerate(tree) if parent == rank] for rank in range(8)]
        print(name, *(f"{rank}: {kids}" for rank, kids in enumerate(children) if kids))

# %% [markdown]
# Yours may look quite different. NCCL's first tree lets all odd ranks be leaves, and for an even number of
# ranks its second is the mirror image, as here with eight:
#
# ![Two trees over ranks 0 to 7. In the first the even ranks have children and the odd ones are leaves; its root is rank 0. The second is its mirror image: the odd ranks have children, and its root is rank 7](../imgs/two_trees.png)
#
# For an odd number NCCL moves every rank on by one instead
# ([trees.cc](https://github.com/NVIDIA/nccl/blob/18a07eeebe485ae00755615ced44739d20970560/src/graph/trees.cc)).
# Then rank 0 has one child in each tree. That does no harm to the bandwidth, since it is the root of the first
# and receives nothing there; `check` is a little stricter.
#
# ### Two trees at work
#
# Here is a broadcast on your trees, pieces and schedule included. The source, rank 0, stands above both, and
# the trees span the other ranks. You need not follow every line. `first_rounds` is the schedule: the edges
# get two colours so that no rank has two edges of one colour to receive on, or two to send on; messages go
# over edges of one colour in even rounds, over those of the other in odd ones. That this always works is the
# heart of the paper.

# %%
def parents_below_source(n, trees):
    """The parents in each tree of ranks 1 to n - 1, with the source, rank 0, above the roots."""
    return [{r + 1: 0 if p is None else p + 1 for r, p in enumerate(tree)} for tree in trees]


def first_rounds(parents):
    """The round in which each rank receives its first piece in each tree."""
    edges = [(k, child) for k, parent in enumerate(parents) for child in parent]
    ends = {edge: (("from", parents[edge[0]][edge[1]]), ("to", edge[1])) for edge in edges}
    at = {}
    for edge in edges:
        for end in ends[edge]:
            at.setdefault(end, []).append(edge)
    colour = {}
    for start in edges:
        todo = [] if start in colour else [(start, 0)]
        while todo:
            edge, hue = todo.pop()
            if edge not in colour:
                colour[edge] = hue
                todo += [(other, 1 - hue) for end in ends[edge] for other in at[end] if other != edge]
    found = []
    for k, parent in enumerate(parents):
        rounds, below = {0: -1}, [0]
        for above in below:  # grows while we go through it
            for child in (c for c, p in parent.items() if p == above):
                after = rounds[above] + 1
                rounds[child] = after + (after + colour[k, child]) % 2
                below.append(child)
        found.append(rounds)
    return found


def tree_program(parents, rounds, pieces):
    """What each rank sends and receives, round by round: (peer, tree, piece)."""
    program = {}
    for k, parent in enumerate(parents):
        for child, above in parent.items():
            for i in range(pieces):
                t = rounds[k][child] + 2 * i
                program.setdefault(above, {}).setdefault(t, {})["send"] = (child, k, i)
                program.setdefault(child, {}).setdefault(t, {})["recv"] = (above, k, i)
    return program


def broadcast_on_trees(x, program, trees, pieces):
    """Rank 0's x goes down one tree, or one half of it down each of two."""
    parts = [part.tensor_split(pieces) for part in x.tensor_split(trees)]
    for _, step in sorted(program.get(dist.get_rank(), {}).items()):
        request = None
        if "send" in step:
            child, k, i = step["send"]
            request = dist.isend(parts[k][i], child)
        if "recv" in step:
            above, k, i = step["recv"]
            dist.recv(parts[k][i], above)
        if request is not None:
            request.wait()


# %% [markdown]
# ## The race of the broadcasts
#
# Five of them, on 64 ranks: the binomial tree of chapter 02, the chain with the best number of pieces,
# scatter and all-gather, *one* binary tree with pieces, and two trees.
#
# **Predict** the winner at 16 KiB, at 1 MiB and at 64 MiB.

# %%
predict("")

# %%
def binomial_broadcast(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        if rank < step and rank + step < n:
            dist.send(x, rank + step)
        elif step <= rank < 2 * step:
            dist.recv(x, rank - step)
        step *= 2


def received(broadcast, nbytes):
    """Whether a rank has rank 0's tensor after a broadcast."""
    x = torch.full((nbytes // 4,), float(dist.get_rank()))
    broadcast(x)
    return bool((x == 0).all())


def broadcast_race(n, trees):
    names = ("binomial", "chain", "scatter", "one tree", "two trees")
    print(f"{n} ranks, µs " + "".join(f"{name:>12}" for name in names))
    for nbytes, size in ((2**14, "16 KiB"), (2**20, "1 MiB"), (64 * 2**20, "64 MiB")):
        shrink = max(1, nbytes // 2**16)
        in_chain = best_pieces(n, nbytes, ALPHA, BETA)
        # on trees a piece of each half follows after two rounds
        depth = 2 * math.log2(n)
        in_tree = max(1, round(math.sqrt(depth * nbytes * BETA / ALPHA) / 2))
        both = parents_below_source(n, trees)
        one = tree_program(both[:1], first_rounds(both[:1]), 2 * in_tree)
        two = tree_program(both, first_rounds(both), in_tree)
        runners = (
            binomial_broadcast,
            lambda x: pipelined_broadcast(x, 0, in_chain),
            lambda x: scatter_all_gather_broadcast(x, 0),
            lambda x: broadcast_on_trees(x, one, 1, 2 * in_tree),
            lambda x: broadcast_on_trees(x, two, 2, in_tree),
        )
        times = []
        for runner in runners:
            done = simulate(received, n, runner, nbytes // shrink, alpha=ALPHA, beta=shrink * BETA)
            assert all(done)
            times.append(1e6 * done.seconds)
        cells = (f"{t:11,.0f}{'*' if t == min(times) else ' '}" for t in times)
        print(f"{size:>12} " + "".join(cells).rstrip())


if pipeline_works and pieces_work and scatter_works and trees_work:
    broadcast_race(64, double_trees(63))

# %% [markdown]
# While latency counts, nothing beats the binomial tree: it has the fewest rounds. From about a megabyte on the
# two trees win. At 64 MiB they need little more than half of the time of one tree, and are not far from 2684 µs,
# which is what it takes a rank to receive 64 MiB at all. The chain comes closer to that limit only when the
# tensor is so large that 62 latencies do not count any more.
#
# A reduction runs the same schedule backwards, from the leaves to the roots, and an all-reduce is a reduction and
# a broadcast: about as many bytes as on the ring, with a latency that grows with $\log n$.
#
# ## What the libraries choose
#
# NCCL has both. Its **rings** run through all GPUs, several of them at the same time so that every network card
# is used. Its **trees** are two binary trees between the nodes, with chains inside the nodes, and were added
# [for jobs of many nodes](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/),
# where the latency of a ring grows with the number of GPUs. Why trees, and not halving and doubling? A rank on
# two trees has four partners at most, at fixed places, which can be laid out along the network once; pieces
# flow in a steady stream; and any number of ranks will do.
#
# Two environment variables, described in
# [NCCL's documentation](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html), say what NCCL may
# choose from:
#
# | | names | what it is |
# |---|---|---|
# | `NCCL_ALGO` | `Ring`, `Tree`, `CollnetDirect`, `CollnetChain`, `NVLS`, `NVLSTree`, `PAT` | the algorithm. Collnet and NVLS let switches add up, which is outside our model |
# | `NCCL_PROTO` | `LL`, `LL128`, `Simple` | how bytes travel in one step: for low latency, or for full bandwidth |
#
# If they are unset, NCCL chooses by a model of its own, which knows the size of the message, the number of
# nodes and of GPUs in them, and the bandwidths: as a message grows it
# [may go](https://github.com/NVIDIA/nccl/issues/754) from Tree with LL to Ring with LL, to Tree with LL128, …,
# to Ring with Simple. It is the model of this chapter, with an $\alpha$ and a $\beta$ for each pair of algorithm and
# protocol. Set the variables to compare, and not in a job that you leave alone: the documentation discourages
# setting `NCCL_PROTO`, since `LL128` can corrupt data on machines that do not support it.
#
# MPICH chooses by size, too: recursive doubling for short all-reduces, Rabenseifner's for long ones, a binomial
# tree for short broadcasts, scatter and all-gather for long ones
# ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521)).
#
# ## On your machine
#
# All this was a model. What do real processes say? As in chapter 11, `torchrun` starts four processes without
# the grader. The first turns only warm up, and we take the median of the rest.
#
# **Predict:** four ranks on one machine. Does the model's winner win?

# %%
predict("")

# %% tags=["nbval-ignore-output"]
def measure_all_reduces(turns=11, warm_up=3):
    """Milliseconds on the clock, of the slowest rank."""
    runners = {
        "ring": plain_ring,
        "doubling": recursive_doubling_all_reduce,
        "halving": halving_doubling_all_reduce,
        "dist.all_reduce": dist.all_reduce,
    }
    for nbytes, size in ((2**10, "1 KiB"), (2**20, "1 MiB"), (16 * 2**20, "16 MiB")):
        x = torch.zeros(nbytes // 4)
        taken = {name: [] for name in runners}
        for _ in range(turns):
            for name, runner in runners.items():
                dist.barrier()
                begin = time.perf_counter()
                runner(x, dist.ReduceOp.SUM)
                seconds = torch.tensor(time.perf_counter() - begin)
                dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
                taken[name].append(1e3 * seconds.item())
        if dist.get_rank() == 0:
            medians = (f"{name} {statistics.median(t[warm_up:]):7.2f}" for name, t in taken.items())
            print(f"{size:>7}, ms:  " + "   ".join(medians))


WITHOUT_GRADER = """
import sys

import cloudpickle
import torch.distributed as dist

with open(sys.argv[1], "rb") as file:
    function = cloudpickle.load(file)
dist.init_process_group("gloo")
function()
dist.destroy_process_group()
"""


def run_without_grader(function):
    """Call a function on four ranks that torchrun starts, and show what they print."""
    with tempfile.TemporaryDirectory() as folder:
        script, pickled = os.path.join(folder, "script.py"), os.path.join(folder, "function.pkl")
        with open(script, "w") as file:
            file.write(WITHOUT_GRADER)
        with open(pickled, "wb") as file:
            cloudpickle.dump(function, file)
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4"]
        done = subprocess.run([*torchrun, script, pickled], capture_output=True, text=True)
    print(done.stdout if done.returncode == 0 else done.stderr[-2000:], end="")


if doubling_works and halving_works:
    run_without_grader(measure_all_reduces)

# %% [markdown]
# Be careful with what you read from this. Where four processes share two cores, a "message" is a copy by the
# processor, and its latency is mostly the time until the operating system wakes the other process; from one
# run to the next the small sizes can differ by a factor of two. What you may expect: with 1 KiB recursive
# doubling has 2 rounds where the ring has 6, and tends to win; with 16 MiB its whole tensors cost it, and the
# ring and halving, which send the same bytes, are close. Run the cell twice, and compare before you believe a difference.
#
# ## Summary
#
# | $n$ ranks, $S$ bytes | latencies | bytes in sequence | good for |
# |---|---|---|---|
# | ring all-reduce | $2(n-1)$ | $2\frac{n-1}{n}S$ | large tensors, any $n$, neighbours only |
# | recursive doubling | $\log_2 n$ | $\log_2 n \cdot S$ | small tensors |
# | halving and doubling | $2\log_2 n$ | $2\frac{n-1}{n}S$ | powers of two on a network that is equal everywhere |
# | binomial broadcast | $\lceil\log_2 n\rceil$ | $\lceil\log_2 n\rceil\, S$ | small tensors |
# | pipelined chain, $k$ pieces | $n-2+k$ | $\frac{n-2+k}{k}S$ | very large tensors |
# | scatter and all-gather | $\lceil\log_2 n\rceil + n - 1$ | $2\frac{n-1}{n}S$ | large tensors, nothing to tune |
# | two trees, $k$ pieces of each half | about $2(k + \log_2 n)$ | about $\frac{k+\log_2 n}{k}S$ | everything in between, many ranks |
#
# - Latency counts *rounds*, bandwidth counts *bytes one after the other*. An algorithm is a compromise between
#   the two, and the best depends on $S$, on $n$, and on the network.
# - Exchanging doubles what a rank knows in each round. Exchanging only what the partner keeps saves the bytes.
# - Pieces let a link work before the whole has arrived. The best number of them is a balance:
#   $k^* = \sqrt{(n-2)S\beta/\alpha}$ on a chain.
# - Two trees use the ports that one tree leaves idle.
# - A model with one $\alpha$ and one $\beta$ does not know who shares a node, and the order of the ranks can decide
#   the race.
#
# Back to the layer norm: recursive doubling sums its 16 KiB on 512 ranks in 96 µs, where the ring takes more
# than 10 ms. And the optimality of the ring that [Patarasuk and Yuan
# 2009](https://doi.org/10.1016/j.jpdc.2008.09.002) prove is one of *bytes*. It says nothing of latencies.
#
# ### Check yourself
#
# <details><summary>1024 ranks, 4 KiB, α = 10 µs. About how long do a ring and recursive doubling take?</summary>
#
# The ring 2 · 1023 · 10 µs, about 20 ms. Recursive doubling 10 · 10 µs, about 0.1 ms; the bytes hardly count.
# </details>
#
# <details><summary>Eight ranks, 800 MB. How much does each send in recursive doubling, and how much with halving and doubling?</summary>
#
# 3 · 800 MB = 2.4 GB, and 2 · 7/8 · 800 MB = 1.4 GB.
# </details>
#
# <details><summary>A job of 96 ranks sums a gigabyte by halving and doubling. Which ranks are slow, and why?</summary>
#
# 64 is the largest power of two, so 32 ranks stand aside. The 32 that take them in receive a whole gigabyte
# before the exchanges and send one after them.
# </details>
#
# <details><summary>You double the latency of the network. What should happen to the number of pieces of your pipeline?</summary>
#
# It shrinks by the root of 2: k* is the root of (n − 2)Sβ/α.
# </details>
#
# <details><summary>Why does a second tree help a broadcast, although it sends the same number of bytes in all?</summary>
#
# In one tree half of the ranks send nothing, and the others send everything twice. With two trees every rank
# sends as much as it receives, so no port is idle and none has to work twice.
# </details>
#
# **Next:** [21 · Hierarchy](21_hierarchy.ipynb): all-reduces that know which ranks share a node.
