# %% [markdown]
# # 20 · Tree algorithms
#
# **Part two** begins here. Your ring from chapter [11](11_ring_all_reduce.ipynb) sends as few bytes as an
# all-reduce by messages can. Now run it on 512 GPUs, and let one of the tensors to sum be the gradient of a
# layer norm: 4096 numbers, 16 KiB. The network carries them in less than a microsecond. The ring takes ten
# milliseconds: 1022 messages one after the other. And a step may have hundreds of such tensors.
#
# **You will learn** the algorithms that libraries use where a ring is too slow: all-reduces whose rounds
# grow only with $\log n$, broadcasts in pieces, and the two trees of NCCL. You will race them on simulated
# clusters, and find out which of them wins, where, and why.
#
# **You need** chapters [11](11_ring_all_reduce.ipynb) (the ring, `isend`, the same bits everywhere) and
# [13](13_cost_models.ipynb) ($\alpha$ and $\beta$), and the tree of chapter [02](02_broadcast.ipynb).
#
# **Time:** 4 hours, and 6 exercises. After the second and after the fourth are good places to stop.

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

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from headcount.simulation.clusters import Flat, Nodes

# %% [markdown]
# ## A thousand latencies
#
# In this chapter the latency of a message is $\alpha = 10$ µs, and its bytes travel at $1/\beta = 25$ GB/s.
# A ring takes $2(n-1)$ rounds, in each of which a rank sends one $n$-th of the tensor.
#
# **Predict:** how much of the ring's time on 512 ranks is latency, for a megabyte and for a gigabyte?
#
# <details><summary>About half, and next to nothing</summary>
#
# No: 1022 latencies take 10 ms, and a megabyte travels in less than a tenth of a millisecond.
# </details>
#
# <details><summary>Nearly all of it, and a tenth</summary>
#
# Yes: 1022 latencies take 10 ms. The bytes of a megabyte take 0.08 ms, those of a gigabyte 86 ms.
# </details>
#
# <details><summary>Nearly all of it, and about half</summary>
#
# No: a gigabyte travels twice, which takes 86 ms. The latencies take 10 ms, as they always do.
# </details>

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
# Up to a megabyte the ring does hardly anything but wait. Larger buckets help, as in chapter
# [15](15_data_parallel.ipynb), but not everywhere: a tensor-parallel layer needs its sum before it can go
# on, and has nothing else to put into the bucket. And the more ranks there are, the longer the wait.
#
# A tree needs $2\lceil\log_2 n\rceil$ rounds: 18 instead of 1022. Can it be done in half as many?
#
# ## Everybody exchanges
#
# In a reduce on a tree, half of the ranks have nothing to do after the first round, and on the way down
# they wait until the last round. Suppose that instead *both* ranks of a pair send what they have, and both add.
# Here are four ranks, with letters in place of numbers. In step 1 the pairs are (0, 1) and (2, 3); in
# step 2 each rank exchanges with the one at distance two.
#
# Follow the letters: what does each rank hold after step 1, and after step 2?

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
# ![Eight ranks in a row, drawn four times from top to bottom. In step 1 each rank exchanges with its neighbour and then holds a sum of two, in step 2 with the rank at distance two and then holds a sum of four, in step 3 at distance four, and then all hold the sum of eight](../imgs/recursive_doubling.png)
#
# With each step the number of ranks in a sum doubles, and so does the distance. This is **recursive
# doubling** ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe it
# for MPICH, including what to do when $n$ is not a power of two). It takes $\log_2 n$ rounds, and in each of
# them every rank sends its whole tensor.
#
# ### The same bits?
#
# Chapter 11 warned against letting each rank add up in an order of its own. Here rank 0 computes its own
# part plus what came from rank 1, and rank 1 does it the other way round.
#
# **Predict:** what do the four ranks get for $10^8$, $-10^8$, $1$ and $10^{-3}$?
#
# <details><summary>Different bits: each rank adds in an order of its own</summary>
#
# No: $a+b$ and $b+a$ have the same bits, and every rank adds up the same pairs of pairs.
# </details>
#
# <details><summary>The same bits, and they are 0</summary>
#
# No: 1 is lost where it meets $10^8$. Here $10^8$ meets $-10^8$ first, and they cancel exactly.
# </details>
#
# <details><summary>The same bits, and they are right to seven digits</summary>
#
# Yes: both ranks of a pair compute the same sum, and in these pairs nothing large meets anything small.
# </details>

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
# The result depends on which ranks form pairs, because a floating-point sum may depend on its order: the second
# order gives 0. But all ranks agree, since addition is *commutative*, though not associative. (The exceptions do
# little harm: which NaN two NaNs give, and which zero is the minimum of 0 and −0, may depend on the order.)
#
# ### When n is not a power of two
#
# Take six ranks. In step 2 rank 4 would exchange with rank 6, which does not exist. So let some ranks
# stand aside: if $p$ is the largest power of two up to $n$, here 4, then $n - p$ ranks are too many. They are
# *folded* into others:
#
# | | ranks 0 and 1 | ranks 2 and 3 | ranks 4 and 5 |
# |---|---|---|---|
# | fold | receive a tensor and add it | | send their tensors to ranks 0 and 1 |
# | exchange | at distances 1 and 2 | at distances 1 and 2 | stand aside |
# | tell | send the result | | receive it |
#
# **Predict:** how many rounds does that take on 6 ranks, on 7, and on 8?
#
# <details><summary>3, 3 and 3</summary>
#
# No: folding and telling take a round each, and only 8 can do without them.
# </details>
#
# <details><summary>4, 4 and 3</summary>
#
# Yes: one to fold, two to exchange, one to tell. All ranks that stand aside do so at the same time.
# </details>
#
# <details><summary>4, 5 and 3</summary>
#
# No: the third rank that stands aside has a partner of its own, so it costs no further round.
# </details>
#
# ## Exercise: recursive doubling
#
# Work in place, for any number of ranks, all five operations (AVG comes with floating-point numbers only), and any
# length. Where $n$ is a power of two it must take exactly $\log_2 n$ rounds; elsewhere at most
# $\lfloor\log_2 n\rfloor + 2$. So six ranks and seven may take four rounds, one more than eight. Which ranks
# stand aside is up to you. Remember that nothing may be written to a tensor while `isend` is sending it.
#
# You know the first of these helpers from chapter [04](04_reduce.ipynb), and have often written the second.

# %%
def combine(mine, received, op):
    """Reduce received into mine, in place. For AVG it adds; divide once, at the end."""
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, received, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, received, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= received
    else:
        mine += received


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
    received = torch.empty_like(x)
    if rank >= power:  # stands aside
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        dist.recv(received, rank + power)
        combine(x, received, op)
    step = 1
    while step < power:
        swap(x, received, rank ^ step)
        combine(x, received, op)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank + power < n:
        dist.send(x, rank + power)
    ### END SOLUTION


doubling_works = check(recursive_doubling_all_reduce)
doubling_works

# %% [markdown]
# Step through your own run. The letters in each cell say whose tensors are in it.

# %%
if doubling_works:
    shown = replay(recursive_doubling_all_reduce, 6)
else:
    shown = None
shown

# %% [markdown]
# Now the gradient of the layer norm, on the 512 ranks of the beginning. How many rounds does that take, and so
# how many microseconds?

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
# Above which size would the ring be faster again? That depends on how many whole tensors a rank sends in either.

# %%
levels, n = 9, 512
size = (2 * (n - 1) - levels) * ALPHA / ((levels - 2 * (n - 1) / n) * BETA)
print(f"both take as long at {size / 1e6:.1f} MB")

# %% [markdown]
# Up to there, recursive doubling is the faster of the two, although it sends nine tensors where the ring
# sends less than two. An algorithm with few rounds *and* few bytes would beat both.
#
# ## Half of it each
#
# Where are all those bytes wasted? After step 1, ranks 0 and 1 hold *the same* sum. Each has received the
# other's whole tensor, and each has added all of it. They could share that work: rank 0 adds up the first
# half and rank 1 the second.
#
# So each sends only the half that the *other* keeps. In step 2 a rank is responsible for half a tensor, and
# shares that half with its next partner, and so on. Letters are elements here: four ranks, four elements.
#
# Which elements is each rank responsible for after step 1, and after step 2? Do they come out in the order of
# the ranks?

# %%
mine = [list("abcd") for _ in range(4)]
for step in (1, 2):
    for r in range(4):
        half = len(mine[r]) // 2
        mine[r] = mine[r][half:] if r & step else mine[r][:half]
    print(f"after step {step}:", *(f"rank {r}: {''.join(m):4}" for r, m in enumerate(mine)))

# %% [markdown]
# After $\log_2 n$ steps each rank holds one $n$-th of the finished sum: a **reduce-scatter** by *recursive
# halving*. Which rank has which element may look odd (rank 1 has c and not b), but it does not matter:
# the same exchanges **backwards** are an **all-gather**, in which what a rank has doubles from step to step.
#
# ![Four ranks, four elements, five rows. Step 1: partners at distance one exchange halves and add. Step 2: partners at distance two exchange quarters, and each rank has one whole sum. Step 3: the same partners exchange quarters, which replace what is there. Step 4: partners at distance one exchange halves, and all are complete](../imgs/halving_doubling.png)
#
# The algorithm is [Rabenseifner's](https://doi.org/10.1007/978-3-540-24685-5_1).
#
# Before you write it, work out its cost: on 8 ranks, how many rounds does it take, and what fraction of the
# tensor does a rank send in all?
#
# ## Exercise: halving and doubling
#
# Work in place, for any number of ranks and any length. For powers of two: $2\log_2 n$ rounds, and no rank sends more
# than $2(n-1)\lceil \mathrm{len}/n\rceil$ elements. Elsewhere fold, as before: at most
# $2\lfloor\log_2 n\rfloor + 2$ rounds, and with $p$ for the largest power of two up to $n$, at most
# $(3p-2)\lceil\mathrm{len}/p\rceil$ elements. That is halving and doubling among $p$ ranks, and one whole tensor
# to hand over. (In Rabenseifner's own fold, ranks exchange halves first. That takes a round more.)
#
# The first partner may be the nearest rank or the farthest. The halves of an odd number of elements differ
# by one, and a half may be empty.

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
        received = torch.empty_like(x)
        dist.recv(received, rank + power)
        combine(x, received, op)
    mine, done, step = x.view(-1), [], 1
    while step < power:  # reduce-scatter: what is mine gets shorter
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        received = torch.empty_like(kept)
        swap(given, received, rank ^ step)
        combine(kept, received, op)
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
# A rank sends a half, a quarter, an eighth, …, and then the same in reverse. If $n$ is a power of two, that is
# $(n-1)/n$ of the tensor in each phase, exactly as much as on the ring:
#
# $$t \;=\; 2\log_2 n\,\alpha + 2\,\frac{n-1}{n}\,S\beta$$
#
# ## The race of the all-reduces
#
# Four algorithms compete on 64 simulated ranks. The tree is that of chapter 11, up to rank 0 and down again.
#
# Simulated ranks really hold their tensors, and 64 of them with 64 MiB each would fill 4 GiB. But the
# model knows only the product $S\beta$: with 1024 times fewer bytes, each costing 1024 times as much, every
# message takes as long as before. That is how the larger sizes are run here.
#
# **Predict:** who wins at 1 KiB, at 1 MiB, and at 64 MiB?
#
# <details><summary>Doubling, halving and the ring</summary>
#
# No: at 64 MiB the ring sends as many bytes as halving and doubling, in ten times as many rounds.
# </details>
#
# <details><summary>The tree, doubling and halving</summary>
#
# No: the tree takes 12 rounds to doubling's 6, and 1 MiB is long enough that whole tensors cost more
# than further rounds.
# </details>
#
# <details><summary>Doubling, halving and halving</summary>
#
# Yes: the fewest rounds win where bytes hardly count, and where they do, few rounds with the fewest
# bytes.
# </details>

# %%
def tree_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    steps = [2**i for i in range(n) if 2**i < n]
    for s in steps:  # up: a rank that has sent is done
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(received, rank + s)
            combine(x, received, op)
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
        received = buffer[: len(mine)] if step < n - 1 else mine
        request = dist.isend(out, (rank + 1) % n)
        dist.recv(received, (rank - 1) % n)
        request.wait()
        if step < n - 1:
            combine(mine, received, op)


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
# A star marks the winner of each row. The ring never wins. On this network and with this number of ranks it
# cannot: it sends as many bytes as halving and doubling, in more rounds. Here are the curves for 512 ranks:
#
# ![Seconds over the size of the tensor, both logarithmic, for 512 ranks. Recursive doubling is lowest up to about 300 kilobytes, halving and doubling from there on. The ring begins a hundred times higher and meets halving and doubling beyond a gigabyte. The tree stays above recursive doubling everywhere](../imgs/all_reduce_curves.png)
#
# So why do libraries still have rings? Because our race was too kind in two ways.
#
# **1. The number of ranks was a power of two.** On 96 ranks, our fold makes 32 stand aside.
#
# **Predict:** who wins at 64 MiB?
#
# <details><summary>Halving, with two rounds more than before</summary>
#
# No: each of the two rounds carries a whole tensor. Together that is as many bytes as in all the
# others.
# </details>
#
# <details><summary>Neither: both send the same number of bytes</summary>
#
# No: that was so for a power of two. A rank that stands in for another has two whole tensors more to
# carry.
# </details>
#
# <details><summary>The ring, which does not care about powers of two</summary>
#
# Yes: what folding adds to halving costs more than all the latencies of the ring.
# </details>

# %%
if doubling_works and halving_works:
    all_reduce_race(96, ring=plain_ring, halving=halving_doubling_all_reduce)

# %% [markdown]
# A rank that stands in for another first receives a whole tensor, and at the end sends a whole result: $2S\beta$
# more. At 64 MiB the ring takes a third less time; the larger the tensor, the closer it gets to half. (That is
# the price of this simple fold. Rabenseifner's paper describes cheaper ones.)
#
# **2. All connections were equal.** Real ranks share nodes. Here is a cluster of nodes with eight ranks
# and one network card each: inside a node a message is ten times as fast as between nodes, and the eight
# ranks have to share the card. We run the same race twice. First, ranks 0 to 7 are on one node, 8 to 15 on
# the next, and so on. Then the ranks are dealt out one at a time, like playing cards: rank $r$ of 64 is on
# node $r \bmod 8$.
#
# `halving_doubling_all_reduce` may begin with the nearest partner or with the farthest. On a flat network
# that makes no difference.
#
# Which of its messages are large here, and which of them leave the node, in each of the two layouts?
#
# **Predict:** what becomes of the ring at 64 MiB when the ranks are dealt out?
#
# <details><summary>It takes as long: each rank still has two neighbours</summary>
#
# No: both neighbours are now on other nodes, and eight messages share a card where there was one.
# </details>
#
# <details><summary>It takes several times as long</summary>
#
# Yes: every message leaves its node, and the eight of a node share its card.
# </details>
#
# <details><summary>It gets faster: all eight ranks of a node send at once</summary>
#
# No: they send at once over the same card. Each gets an eighth of it.
# </details>

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
# with the nearest partner, the first three exchanges stay inside the node in the first layout, and in each
# phase less than an eighth of every rank's tensor goes through the card. In the second layout a half, a
# quarter and an eighth go through it, from all eight ranks at the same time. (If yours begins with the
# farthest partner, it is the other way round.) The ring has one message at a time on each card in the first
# layout, and eight in the second.
#
# So for a large tensor the order of the ranks can matter more than the choice between ring and halving. A
# ring is easy to lay out well, since each rank needs only two good neighbours. Halving needs good connections
# to $\log_2 n$ partners. The next chapter makes the nodes part of the algorithm.
#
# ## From one to all, in pieces
#
# Rank 0 has read a checkpoint of 14 GB, and all other ranks need it. The tree of chapter
# [02](02_broadcast.ipynb) sends it $\lceil\log_2 n\rceil$ times, one after the other: nine times on 512
# ranks. While the first rank receives, the others wait, although its first megabytes arrive long before its
# last.
#
# So arrange the ranks in a chain, and cut the tensor into **pieces**. Each rank passes a piece on while the
# next one is coming in.
#
# ![Five ranks from top to bottom, time from left to right. Piece 0 moves down the chain by one rank in each round, and pieces 1, 2 and 3 follow one round apart. After seven rounds the last rank has all four; in round 4 all four links are busy](../imgs/pipelined_chain.png)
#
# These are seven rounds. How many would ten pieces on five ranks take, and $k$ pieces on $n$ ranks? How many
# bytes does a message carry, compared with one of the tree?
#
# ## Exercise: a pipelined broadcast
#
# The chain is `src`, `src + 1`, … modulo $n$, and its last rank passes nothing on. Over each of its links,
# send $k = \max(1, \min(\texttt{pieces}, \mathrm{len}))$ pieces of about the same size, in $n - 2 + k$ rounds
# altogether. (A tensor without elements is one empty piece.) A rank that receives a piece, sends it, and only
# then turns to the next one is too slow: it must send one piece while it receives the next.

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
# A timeline shows when each rank waits and when its pieces come: the pipeline is the slope. This one is in
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
# A message carries $S/k$ bytes, so the broadcast takes
#
# $$t(k) \;=\; (n - 2 + k)\left(\alpha + \frac{S\beta}{k}\right).$$
#
# One piece is bad: $n-1$ whole messages in sequence. A million pieces are worse: a million latencies. (In this
# model a link carries one message at a time, latency included. On real links the latencies of consecutive pieces
# overlap, and what each piece costs is the overhead of sending it. The best number of pieces is then larger.)
#
# Take 64 MiB on 64 ranks. Which of these numbers of pieces is best?

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
# Find the whole number $k$ that makes $t(k)$ smallest, for any $n$, $S$ (`nbytes`), $\alpha$ and $\beta$. There is
# at least one piece, and a piece has at least one byte, so there are at most `nbytes` pieces (or one, if there
# are no bytes). $\alpha$ is never 0; `nbytes` and `beta` may be. On one rank or two the answer is 1, since
# nothing is passed on there. Multiply the brackets out, and ask which terms depend on $k$. The best $k$ on
# paper is hardly ever a whole number, and the whole number nearest to it is not always the best one.

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
# Only the last two terms depend on $k$. One grows and the other shrinks; their product is the same for every
# $k$, so their sum is least where they are equal:
#
# $$k^* = \sqrt{\frac{(n-2)\,S\beta}{\alpha}}, \qquad
# t(k^*) \;=\; \left(\sqrt{(n-2)\,\alpha} + \sqrt{S\beta}\right)^2.$$
#
# Where $S\beta$ is much larger than $(n-2)\alpha$, that is little more than $S\beta$, half of what a ring
# all-reduce takes. In this model nothing can be faster, since every rank but one has to receive $S$ bytes. But
# the latency is that of a chain: at least $(n-1)\alpha$.

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
# The checkpoint of 14 GB reaches all 512 ranks in 0.67 s. The tree takes nine times 0.56 s, which is 5 s.
#
# ## Scatter, then all-gather
#
# A pipeline has a number to tune: for 64 MiB, 129 pieces are best on 64 ranks and 370 on 512. There is another
# way, with nothing to tune. You know the idea from the all-reduce: combine two collectives that share the work.
#
# The source sends each rank a *different* $n$-th of the tensor. That is a **scatter**, and costs the source
# about $S\beta$. Then the ranks pass their shares around in an **all-gather**, which costs about $S\beta$ once
# more; on a ring every rank sends and receives all the time. The algorithm is known as **van de Geijn's**;
# [Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe how MPICH uses it
# for long messages, and [Chan and others 2007](https://doi.org/10.1002/cpe.1206) derive it as a member of a
# family.
#
# How many rounds does the scatter take if the source sends the shares one after the other? And on a tree, where
# it first sends half of the tensor to a rank that hands out that half?
#
# ## Exercise: broadcast by scatter and all-gather
#
# Work in place, for any length and any source. No rank may send more than $2(n-1)\lceil\mathrm{len}/n\rceil$ elements, and
# no message may hold more than $\lceil n/2\rceil$ shares of $\lceil\mathrm{len}/n\rceil$. How you scatter and how
# you gather is up to you. It helps to count ranks from the source: the rank at place $v$ is
# $(v + \mathrm{src}) \bmod n$.

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
# A source that sends all shares itself takes $n-1$ rounds for the scatter; a tree takes
# $\lceil\log_2 n\rceil$. With a tree for the scatter and a ring for the all-gather,
#
# $$t \;=\; \left(\lceil\log_2 n\rceil + n - 1\right)\alpha \;+\; 2\,\frac{n-1}{n}\,S\beta.$$
#
# That is twice the bytes of the pipeline, and the all-gather still takes $n-1$ latencies. (With recursive doubling in
# place of the ring there are only $\log_2 n$, if $n$ is a power of two.) So this is for large tensors. The table
# in your verdict is for 8000 bytes, and there the tree is faster; but compare the bytes that the busiest
# rank sends.
#
# ## Two trees
#
# Can a broadcast have both, few latencies *and* full bandwidth? Pieces can flow down a tree as well as down a
# chain, and in a full binary tree the last rank is only about $\log_2 n$ levels away. But a rank with two
# children has to send each piece twice, so it can take in a new one only every second round.
#
# ![A binary tree of seven ranks. The three ranks with children are drawn bold, and send every piece twice. The four leaves are drawn dashed, and send nothing](../imgs/idle_leaves.png)
#
# How many of 64 ranks have children in such a tree? If every rank could send one piece in each round, how much
# of that capacity would go unused?
#
# About half of the ranks send twice as much as they receive, and the others nothing at all: half of the
# capacity is unused. So take **two trees** over the same ranks, and send one half of the tensor down each of
# them. If every rank that has children in one tree is a *leaf* in the other, it receives two halves and sends
# one half twice: as much as it receives. Apart from the start and the end, every rank is sending and
# receiving in every round. That is the idea of
# [Sanders, Speck and Träff 2009](https://doi.org/10.1016/j.parco.2009.09.001), who also show that the
# messages can be scheduled so that no rank ever has two of them to receive, or two to send, in one round.
#
# ## Exercise: two trees
#
# Return two lists of parents: entry $r$ of a list is the parent of rank $r$ in that tree, and `None` for its
# root. In each tree a rank has at most two children, and no path from a rank to the root is longer than
# $\lceil\log_2 n\rceil + 1$ edges. **No rank has children in both.** $n$ is at least 1. Nothing is sent.
#
# What is the smallest number of ranks with children in a binary tree? Are there enough for two trees?

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
# Yours may look quite different. In NCCL's first tree all odd ranks are leaves, and for an even number of
# ranks the second tree is its mirror image, as here with eight:
#
# ![Two trees over ranks 0 to 7. In the first the even ranks have children and the odd ones are leaves; its root is rank 0. The second is its mirror image: the odd ranks have children, and its root is rank 7](../imgs/two_trees.png)
#
# For an odd number NCCL moves every rank on by one instead
# ([trees.cc](https://github.com/NVIDIA/nccl/blob/18a07eeebe485ae00755615ced44739d20970560/src/graph/trees.cc)).
# Then rank 0 has one child in each tree. That does not cost any bandwidth, since with one child in each it
# sends each half only once; `check` is a little stricter.
#
# ### Two trees at work
#
# Here is a broadcast on your trees, with pieces and a schedule. The source, rank 0, sits above both trees,
# which span the other ranks. You need not follow every line. `first_rounds` is the schedule: the edges get
# two colours so that no rank has two edges of one colour to receive on, or two to send on; messages go over
# edges of one colour in even rounds, and over those of the other in odd rounds. That this always works is the
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


def four_pieces_in_each_half(program):
    broadcast_on_trees(torch.zeros(2**18), program, 2, 4)


# %% [markdown]
# Here are eight ranks at it, with four pieces in each half. In which rounds does a rank receive nothing?

# %%
if trees_work:
    below = parents_below_source(8, double_trees(7))
    program = tree_program(below, first_rounds(below), 4)
    shown = timeline(simulate(four_pieces_in_each_half, 8, program, alpha=ALPHA, beta=BETA))
else:
    shown = None
shown

# %% [markdown]
# Only near the beginning and the end. Once both halves have begun to arrive, a piece arrives in every round: that is the
# full bandwidth. (If your trees are not ours, your timeline looks different.)
#
# ## The race of the broadcasts
#
# Five of them compete on 64 ranks: the binomial tree of chapter 02, the chain with the best number of pieces,
# scatter and all-gather, *one* binary tree with pieces, and two trees.
#
# **Predict:** who wins at 16 KiB, at 1 MiB and at 64 MiB?
#
# <details><summary>The binomial tree, two trees, and two trees</summary>
#
# Yes: the fewest rounds win where latency is all that counts. For more bytes it takes few rounds and
# the capacity of every rank.
# </details>
#
# <details><summary>The binomial tree, two trees, and the chain</summary>
#
# No: 64 MiB are not long enough for the chain. Its first piece is passed on by 62 ranks before the last
# one has it.
# </details>
#
# <details><summary>Two trees, two trees, and two trees</summary>
#
# No: the smallest tensor is short enough that six rounds with whole tensors beat pieces on a deeper
# tree.
# </details>

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
# At 64 MiB the two trees need little more than half the time of one tree, and 1.4 times the 2684 µs that it
# takes a rank to receive 64 MiB at all. The chain also gets close to that limit, but only with tensors so large
# that 62 latencies no longer count.
#
# A reduction runs the same schedule backwards, from the leaves to the roots, and an all-reduce is a reduction and
# a broadcast: about as many bytes as on the ring, with a latency that grows with $\log n$.
#
# ## What the libraries choose
#
# NCCL has rings and trees. Its **rings** run through all GPUs, several of them at the same time so that every
# network card is used. Its **trees** are two binary trees between the nodes, with chains inside the nodes. They
# were added [for jobs of many nodes](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/),
# since the latency of a ring grows with the number of GPUs. Why two trees rather than halving and doubling?
# A rank on two trees has at most four partners, always the same ones, which can be laid out along the network
# once; pieces flow in a steady stream; and any number of ranks will do.
#
# Inside a node, GPUs can read each other's memory, and small tensors need neither rings nor trees. In a *one-shot*
# all-reduce every GPU reads the tensors of all others and adds them up. In a *two-shot* one it does so for its
# $n$-th part, and then reads the other parts from the GPUs that have summed them. Inference on several GPUs uses
# them: it waits for small sums all the time. See
# [NCCL 2.27](https://developer.nvidia.com/blog/enabling-fast-inference-and-resilient-training-with-nccl-2-27) and
# torch's [symmetric memory](https://docs.pytorch.org/docs/stable/symmetric_memory.html).
#
# Two environment variables, described in
# [NCCL's documentation](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html), say what NCCL may
# choose from:
#
# | | values | what it is |
# |---|---|---|
# | `NCCL_ALGO` | `Ring`, `Tree`, `CollnetDirect`, `CollnetChain`, `NVLS`, `NVLSTree`, `PAT` | the algorithm. With Collnet and NVLS the switches add, which is outside our model; PAT is [for all-gather and reduce-scatter](https://github.com/NVIDIA/nccl/issues/1473) |
# | `NCCL_PROTO` | `LL`, `LL128`, `Simple` | how bytes travel in one step: for low latency, or for full bandwidth |
#
# If they are unset, NCCL chooses by a model of its own, which knows the size of the message, the number of
# nodes and of GPUs in them, and the bandwidths: as a message grows, NCCL
# [may go](https://github.com/NVIDIA/nccl/issues/754) from Tree with LL to Ring with LL, to Tree with LL128, …,
# to Ring with Simple. The idea is that of this chapter: [estimate the time](https://github.com/NVIDIA/nccl/issues/457)
# of each pair of algorithm and protocol, and take the shortest. Set the variables for an experiment, then unset
# them: the documentation discourages setting `NCCL_PROTO`, since enabling `LL128` can corrupt data on platforms that
# do not support it.
#
# MPICH also chooses by size: recursive doubling for short all-reduces, Rabenseifner's algorithm for long ones,
# a binomial tree for short broadcasts, scatter and all-gather for long ones
# ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521)).
#
# ## On your machine
#
# All this was a model. What do real processes say? As in chapter 11, `torchrun` starts four processes without
# the grader. The first three turns are for warming up, and we take the median of the rest.
#
# Four ranks on one machine: does the model's winner win?

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
# Be careful with what you read from this. On one machine a "message" is a copy by the processor, and where the
# processes share a few cores, its latency is mostly the time until the operating system wakes the other process.
# The times of small sizes can vary severalfold from run to run: 1 KiB may even take longer than 1 MiB.
# For 1 KiB count rounds: recursive doubling has 2, halving 4 and the ring 6. For 16 MiB count bytes: recursive
# doubling sends the tensor twice, and the other two send it one and a half times. With four ranks that is all the
# difference there is. Run the cell twice, and compare before you believe in a difference.
#
# ## Summary
#
# | $n$ ranks, $S$ bytes | latencies | bytes in sequence | good for |
# |---|---|---|---|
# | ring all-reduce | $2(n-1)$ | $2\frac{n-1}{n}S$ | large tensors, any $n$, neighbours only |
# | recursive doubling, $n$ a power of two | $\log_2 n$ | $\log_2 n \cdot S$ | small tensors |
# | halving and doubling, $n$ a power of two | $2\log_2 n$ | $2\frac{n-1}{n}S$ | all but the smallest tensors, where links are equal |
# | binomial broadcast | $\lceil\log_2 n\rceil$ | $\lceil\log_2 n\rceil\, S$ | small tensors |
# | pipelined chain, $k$ pieces | $n-2+k$ | $\frac{n-2+k}{k}S$ | very large tensors, few ranks |
# | scatter and all-gather | $\lceil\log_2 n\rceil + n - 1$ | $2\frac{n-1}{n}S$ | large tensors, nothing to tune |
# | two trees, $k$ pieces in each half | about $2(k + \log_2 n)$ | about $\frac{k+\log_2 n}{k}S$ | all but small tensors, many ranks |
#
# - Latency is paid once per *round*, bandwidth for all *bytes in sequence*. An algorithm is a compromise between
#   the two, and which one is best depends on $S$, on $n$, and on the network.
# - Exchanging doubles what a rank knows in each round. Sending only what the partner keeps saves the bytes.
# - Pieces let a link work before the whole tensor has arrived. The best number of pieces is a balance:
#   $k^* = \sqrt{(n-2)S\beta/\alpha}$ on a chain.
# - Two trees use the sending capacity that one tree leaves idle.
# - A model with one $\alpha$ and one $\beta$ does not know which ranks share a node, and the order of the ranks
#   can decide the race.
#
# Back to the layer norm: recursive doubling sums its 16 KiB on 512 ranks in 96 µs, where the ring takes more
# than 10 ms. The ring is optimal, as [Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002) prove,
# but only in *bytes* sent from rank to rank. That says nothing about latency.
#
# ### Check yourself
#
# <details><summary>1024 ranks, 4 KiB, α = 10 µs. About how long do a ring and recursive doubling take?</summary>
#
# The ring: 2 · 1023 · 10 µs, about 20 ms. Recursive doubling: 10 · 10 µs, about 0.1 ms. The bytes hardly count.
# </details>
#
# <details><summary>Eight ranks, 800 MB. How much does each send in recursive doubling, and how much in halving and doubling?</summary>
#
# 3 · 800 MB = 2.4 GB, and 2 · 7/8 · 800 MB = 1.4 GB.
# </details>
#
# <details><summary>A job of 96 ranks sums a gigabyte by halving and doubling. Which ranks are slow, and why?</summary>
#
# 64 is the largest power of two up to 96, so 32 ranks stand aside. The 32 that stand in for them receive a whole
# gigabyte before the exchanges and send one after them; the others wait for them.
# </details>
#
# <details><summary>You double the latency of the network. What should happen to the number of pieces of your pipeline?</summary>
#
# It shrinks by a factor of √2: k* is the root of (n − 2)Sβ/α.
# </details>
#
# <details><summary>Why does a second tree help a broadcast, although it sends the same number of bytes in all?</summary>
#
# In one tree about half of the ranks send nothing, and the others send everything twice. With two trees almost
# every rank sends as much as it receives, so none is idle and none has to send everything twice.
# </details>
#
# **Next:** [21 · Hierarchy](21_hierarchy.ipynb): all-reduces that know which ranks share a node.
