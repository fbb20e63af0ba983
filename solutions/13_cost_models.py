# %% [markdown]
# # 13 · Cost models
#
# Your job is going to run on 512 GPUs. Will its all-reduce take a millisecond or a second? Should it be
# a ring or a tree? And would twice as many GPUs make it faster, or slower? You would like to know before
# you have booked the machine.
#
# **You will learn** to say how long a collective takes *before* it runs, from two numbers: what a
# message costs, and what a byte costs. You find out when a ring is faster than a tree and when it is
# not, measure the two numbers of your own machine, and see how far the prediction holds. Then you run
# the same functions on hundreds of simulated ranks.
#
# **You need** chapter [11](11_ring_all_reduce.ipynb): the ring, the tree, rounds. Nothing but school
# algebra.
#
# **Time:** 2 hours, and 4 exercises. All four are plain functions; nothing is sent in them.

# %%
import math
import statistics
import time
from fractions import Fraction

import torch
import torch.distributed as dist

from grader import check, hint, predict, run, simulate
from grader.simulation.clusters import Nodes

# %% [markdown]
# ## One message
#
# Send a letter with one page, and then a letter with a hundred. The second takes a little longer to
# write, but the way to the letter box is the same. With messages it is like that, too: something is
# paid for *each message*, and something for *each byte*.
#
# $$t(S) \;=\; \alpha + \beta S$$
#
# | | name | unit |
# |---|---|---|
# | $\alpha$ | latency, the cost of a message however small | seconds |
# | $\beta$ | cost of a byte, one divided by the bandwidth | seconds per **byte** |
# | $S$ | size | bytes |
#
# This is the **alpha-beta model**. It is not the most exact one, but so simple that one can think with
# it.
#
# Take $\alpha = 10$ µs, and a link of 80 Gbit/s. Networks are sold in *bits* per second, and there
# are 8 in a byte: 80 Gbit/s are 10 GB/s, so $\beta = 0.1$ ns per byte.
#
# **Predict:** how much longer does a message of 1000 bytes take than an empty one? And one of a
# million bytes?

# %%
ALPHA, BETA = 10e-6, 8 / 80e9

for nbytes in (0, 1, 1000, 10**5, 10**6, 10**9):
    seconds = ALPHA + BETA * nbytes
    print(f"{nbytes:13,} bytes: {1e6 * seconds:12,.1f} µs, of which latency {ALPHA / seconds:7.2%}")

# %% [markdown]
# Below some size only the *number* of messages counts, above it only the *bytes*. The border is where
# both cost the same, $S = \alpha/\beta$: here 100,000 bytes. Remember it as the size of a "small"
# message on a network.
#
# ## From messages to a collective
#
# A collective is many messages, and many of them travel at the same time. To add up its cost we need
# rules. These are the usual ones:
#
# - a rank can send one message **and** receive one at the same time, no more;
# - messages between different pairs of ranks do not disturb each other;
# - adding numbers up costs nothing.
#
# Then a round, in which everybody sends and receives at most one message, takes as long as its largest
# message. And an algorithm that works in rounds takes the sum of its rounds.
#
# Here are two all-reduces from chapter 11, the ring and the tree, on real ranks.

# %%
def ring_sum(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(n)
    buffer = torch.empty_like(chunks[0])  # as long as the longest
    for step in range(2 * (n - 1)):
        gives, mine = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        adding = step < n - 1
        came = buffer[: len(mine)] if adding else mine
        request = dist.isend(gives, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        if adding:
            mine += came


def tree_sum(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    steps = [2**i for i in range(n) if 2**i < n]
    for s in steps:  # up: whoever has sent is done
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(came, rank + s)
            x += came
    for s in reversed(steps):  # down
        if rank % (2 * s) == 0 and rank + s < n:
            dist.send(x, rank + s)
        elif rank % (2 * s) == s:
            dist.recv(x, rank - s)


def all_same(algorithm):
    x = torch.arange(840.0) + dist.get_rank()
    whole = x.clone()
    algorithm(x)
    dist.all_reduce(whole)
    return torch.equal(x, whole)


for algorithm in (ring_sum, tree_sum):
    right = [all(run(all_same, n, algorithm)) for n in (1, 2, 3, 4, 5, 8)]
    print(f"{algorithm.__name__}: as dist.all_reduce on 1, 2, 3, 4, 5, 8 ranks:", all(right))

# %% [markdown]
# From the record of a run we can take every message, and the round in which it travels. So we can
# let the computer count what the model says:

# %%
def largest_in_each_round(trace):
    largest = {}
    for message in trace.messages:
        largest[message.start] = max(largest.get(message.start, 0), message.nbytes)
    return [nbytes for _, nbytes in sorted(largest.items())]


def counted_seconds(trace, alpha, beta):
    return sum(alpha + beta * nbytes for nbytes in largest_in_each_round(trace))


x = torch.ones(840)  # 4 bytes each: 3360 bytes
traces = {
    (algorithm, n): run(algorithm, n, x).trace
    for algorithm in (ring_sum, tree_sum)
    for n in (1, 2, 3, 4, 5, 8)
}
for algorithm in (ring_sum, tree_sum):
    for n in (4, 5):
        rounds = largest_in_each_round(traces[algorithm, n])
        print(f"{algorithm.__name__} on {n} ranks, bytes in each round: {rounds}")

# %% [markdown]
# ## The ring
#
# Look at the rounds of the ring on 4 ranks: six of them, each with 840 bytes. **Predict** for $n$
# ranks and $S$ bytes: how many rounds, and how many bytes in each? Then write the formula.
#
# ## Exercise: the ring's seconds
#
# `nbytes` is the size of the whole tensor, `alpha` is in seconds, `beta` in seconds per byte. All
# messages of a round are chunks of $S/n$ bytes; in the model there are no whole bytes, so do not
# round. One rank alone has nothing to send.

# %%
predict("")

# %%
def ring_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float:
    """Seconds of a ring all-reduce in the alpha-beta model."""
    ### BEGIN SOLUTION
    return 2 * (n - 1) * (alpha + nbytes / n * beta)
    ### END SOLUTION


ring_known = check(ring_all_reduce_seconds)
ring_known

# %% [markdown]
# Does your formula agree with the messages that were really sent?

# %%
if ring_known:
    for n in (1, 2, 3, 4, 5, 8):
        counted = counted_seconds(traces[ring_sum, n], ALPHA, BETA)
        formula = ring_all_reduce_seconds(n, 3360, ALPHA, BETA)
        print(f"{n} ranks: counted {1e6 * counted:7.3f} µs, your formula {1e6 * formula:7.3f} µs")

# %% [markdown]
# ### Once more: where does the 2 come from?
#
# "Everything is sent once and received once, so the factor is 2." You may have read this, and for
# many ranks the number is nearly right. Your formula says something else. Take the latency away
# ($\alpha = 0$), let a byte cost 1, and it gives the bytes that the clock sees, as a multiple of $S$.
# Beside it: what rank 0 really sent, in each of the two phases.
#
# **Predict** the number for 2 ranks.

# %%
def sent_in_phases(trace):
    n = trace.world_size
    mine = [message for message in trace.messages if message.source == 0]
    first = sum(message.nbytes for message in mine if message.start < n - 1)
    return first, sum(message.nbytes for message in mine) - first


if ring_known:
    for n in (2, 3, 4, 5, 8):
        first, second = sent_in_phases(traces[ring_sum, n])
        factor = ring_all_reduce_seconds(n, 1, alpha=0, beta=1)
        print(f"{n} ranks: factor {factor:.4f}; really sent {first / 3360:.4f} + {second / 3360:.4f}")

# %% [markdown]
# With two ranks it is 1 and not 2, and it never gets to 2. If "sent and received" were the reason,
# receiving would have to cost extra, but it happens at the same time. The factor is
# $2(n-1)/n$: **two phases**, and in each a rank sends all chunks but one.
#
# ## The tree
#
# A binomial tree reduces to rank 0, and then broadcasts from it. Every message is the whole tensor.
# Going down, the number of ranks that have the result doubles in every round.
#
# **Predict:** how many rounds does the way down take on 4 ranks, on 5, on 8?

# %%
for n in (1, 2, 3, 4, 5, 8):
    rounds = largest_in_each_round(traces[tree_sum, n])
    print(f"{n} ranks: {len(rounds)} rounds up and down, bytes in each: {sorted(set(rounds))}")

# %% [markdown]
# The way down takes $\lceil \log_2 n \rceil$ rounds: $\log_2 n$, rounded up. As many as you must
# double 1 to reach $n$.
#
# Computers round logarithms. Most of the time one does not notice:

# %%
for power in (3, 10, 29):
    n = 2**power
    print(f"log₂ of 2^{power}: math.log2 {math.log2(n)}, math.log(n, 2) {math.log(n, 2)}")

# %% [markdown]
# The last number, rounded up, is 30. In whole numbers there is nothing to round: Python's
# `(n - 1).bit_length()` is $\lceil \log_2 n \rceil$ for every $n \ge 1$.
#
# ## Exercise: the tree's seconds

# %%
def tree_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float:
    """Seconds of a reduce and a broadcast on a binomial tree in the alpha-beta model."""
    ### BEGIN SOLUTION
    levels = (n - 1).bit_length()
    return 2 * levels * (alpha + nbytes * beta)
    ### END SOLUTION


tree_known = check(tree_all_reduce_seconds)
tree_known

# %%
if tree_known:
    for n in (1, 2, 3, 4, 5, 8):
        counted = counted_seconds(traces[tree_sum, n], ALPHA, BETA)
        formula = tree_all_reduce_seconds(n, 3360, ALPHA, BETA)
        print(f"{n} ranks: counted {1e6 * counted:7.3f} µs, your formula {1e6 * formula:7.3f} µs")

# %% [markdown]
# ## Where they cross
#
# | | latency | bytes |
# |---|---|---|
# | ring | $2(n-1)\,\alpha$ | $2\frac{n-1}{n}\,\beta S$ |
# | tree | $2\lceil \log_2 n \rceil\,\alpha$ | $2\lceil \log_2 n \rceil\,\beta S$ |
#
# The tree has fewer latencies, and the ring has fewer bytes. **Predict:** on 64 ranks, which one
# would you take for a single number? Which one for the gradients of a large model?

# %%
if ring_known and tree_known:
    for nbytes in (8, 10**3, 10**5, 10**6, 10**7, 10**9):
        ring = ring_all_reduce_seconds(64, nbytes, ALPHA, BETA)
        tree = tree_all_reduce_seconds(64, nbytes, ALPHA, BETA)
        faster, times = ("ring", tree / ring) if ring <= tree else ("tree", ring / tree)
        print(
            f"{nbytes:13,} bytes: ring {1e3 * ring:9.3f} ms, tree {1e3 * tree:9.3f} ms,"
            f" the {faster} is {times:.1f} times as fast"
        )

# %% [markdown]
# "Rings beat trees", many texts say, without a condition. The table refutes it: for a single number
# the tree is ten times as fast, for a gigabyte the ring six times. Both are right, at their end.
#
# ![Seconds over the size of the tensor on 8, 64 and 1024 ranks, both axes logarithmic. In each panel the curve of the tree lies below that of the ring for small sizes, and above it for large ones. The crossing is marked; the more ranks, the larger the size at which it lies](../imgs/cost_curves.png)
#
# Each curve is flat on the left, where the latency counts, and rises on the right, where the bytes do.
# The crossing moves to the right when there are more ranks: a ring of 1024 has 2046 latencies in a
# row, and it takes much data to make up for that.
#
# ## Exercise: the crossing
#
# Write the size from which the ring is **no slower** than the tree. Set the two formulas equal and
# solve for $S$. A size in bytes need not be a whole number here.
#
# Return 0 if the ring is no slower at *every* size, and `math.inf` if it is slower at every size.
# Think before you divide: what happens on 1, 2 and 3 ranks? What if `alpha` is 0, or `beta`, or both?

# %%
def crossover_bytes(n: int, alpha: float, beta: float) -> float:
    """The size from which the ring is no slower than the tree."""
    ### BEGIN SOLUTION
    levels = (n - 1).bit_length()
    latency = (n - 1 - levels) * alpha  # what the ring has more; half of it
    if latency <= 0:
        return 0.0
    if beta == 0:
        return math.inf
    return latency / ((levels - (n - 1) / n) * beta)
    ### END SOLUTION


crossing_known = check(crossover_bytes)
crossing_known

# %%
if ring_known and tree_known and crossing_known:
    for n in (2, 3, 4, 8, 64, 1024):
        size = crossover_bytes(n, ALPHA, BETA)
        ring = ring_all_reduce_seconds(n, size, ALPHA, BETA)
        tree = tree_all_reduce_seconds(n, size, ALPHA, BETA)
        both = f"there ring {1e3 * ring:7.3f} ms, tree {1e3 * tree:7.3f} ms"
        print(f"{n:4} ranks: {size:12,.0f} bytes; {both}")

# %% [markdown]
# With two or three ranks there is nothing to choose: $n - 1$ and $\lceil \log_2 n \rceil$ are the
# same, so the ring has as many rounds as the tree, and shorter messages.
#
# ## How good can it get?
#
# Before one looks for a better algorithm, it is good to know what *no* algorithm can do.
#
# **Rounds.** Everybody's result depends on everybody's input. After one round a rank knows of at most
# two inputs, its own and one other; after two rounds of four; after $k$ rounds of $2^k$. So it takes
# at least $\lceil \log_2 n \rceil$ rounds.
#
# **Bytes.** Some rank has to send at least $2\frac{n-1}{n}S$ bytes
# ([Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)), and it sends them one after
# the other.
#
# Such bounds for all the collectives are in
# [Chan, Heimlich, Purkayastha and van de Geijn 2007](https://doi.org/10.1002/cpe.1206). The tree needs
# twice as many rounds as the bound, and many more bytes. The ring meets the bound on bytes exactly,
# and needs many more rounds.
#
# Is there one that is good at both? If $n$ is a power of two, yes. In the first round you exchange
# *halves* with a rank that is $n/2$ away, and each adds up the half that it keeps. Then quarters with
# one that is $n/4$ away, and so on: that is a reduce-scatter. The same way back is an all-gather.
#
# **Predict:** how many bytes are in each round on 8 ranks, if the tensor has 3360?

# %%
predict("")

# %%
def halving_sum(x):
    """An all-reduce for powers of two; x can be halved that often."""
    rank, distance, mine = dist.get_rank(), dist.get_world_size() // 2, x
    way = []
    while distance:
        peer = rank ^ distance
        low, high = mine.tensor_split(2)
        mine, gives = (low, high) if rank < peer else (high, low)
        came = torch.empty_like(mine)
        request = dist.isend(gives, peer)
        dist.recv(came, peer)
        request.wait()
        mine += came
        way.append((peer, mine, gives))
        distance //= 2
    for peer, mine, missing in reversed(way):
        request = dist.isend(mine, peer)
        dist.recv(missing, peer)
        request.wait()


right = [all(run(all_same, n, halving_sum)) for n in (1, 2, 4, 8)]
print("halving_sum: as dist.all_reduce on 1, 2, 4, 8 ranks:", all(right))
for n in (4, 8):
    rounds = largest_in_each_round(run(halving_sum, n, x).trace)
    print(f"{n} ranks: {rounds}, in all {sum(rounds)} = {sum(rounds) / 3360} S")

# %% [markdown]
# As many rounds as the tree, and as few bytes as the ring:
# $2 \log_2 n \,\alpha + 2\frac{n-1}{n} \beta S$. It is known as Rabenseifner's algorithm;
# [Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe it, together
# with the sizes at which the MPI library MPICH changes from one algorithm to another. That is what
# cost models are for: libraries use them to choose.

# %%
def halving_seconds(n, nbytes, alpha, beta):
    return 2 * math.log2(n) * alpha + 2 * (n - 1) / n * nbytes * beta


def bound_seconds(n, nbytes, alpha, beta):
    """No less than either bound."""
    return max(math.ceil(math.log2(n)) * alpha, 2 * (n - 1) / n * nbytes * beta)


if ring_known and tree_known:
    models = (tree_all_reduce_seconds, ring_all_reduce_seconds, halving_seconds, bound_seconds)
    print(f"{'ms on 64 ranks':19}{'tree':>10}{'ring':>10}{'halving':>10}{'bound':>10}")
    for nbytes in (8, 10**5, 10**6, 10**7, 10**9):
        row = "".join(f"{1e3 * model(64, nbytes, ALPHA, BETA):10.3f}" for model in models)
        print(f"{nbytes:13,} bytes{row}")

# %% [markdown]
# In this model, halving is never slower than the ring or the tree. So why are there rings at all? Look
# at our second rule: "messages between different pairs do not disturb each other". In the
# first round of the halving everybody talks across the whole machine, over links that others need as
# well. On the ring everybody talks to a neighbour. The model does not know who is whose neighbour.
#
# ### A bottleneck is a matter of cost, a failure is not
#
# The table of costs says that the ring has no central *bottleneck*: all its ranks send the same. Some
# texts conclude that it has no "single point of failure". Count both on five ranks. **Predict:** if
# rank 2 is gone, how many of the other four finish?

# %%
predict("")

# %%
def sent_by_rank(trace):
    sent = [0] * trace.world_size
    for message in trace.messages:
        sent[message.source] += message.nbytes
    return sent


def ring_without_rank_2():
    if dist.get_rank() != 2:
        ring_sum(torch.ones(840))


for algorithm in (ring_sum, tree_sum):
    print(f"bytes sent by ranks 0 to 4, {algorithm.__name__}: {sent_by_rank(traces[algorithm, 5])}")
gone = run(ring_without_rank_2, 5, may_fail=True).failure
print("rank 2 is gone; ranks that wait for ever:", [wait.rank for wait in gone.waits])

# %% [markdown]
# Nobody finishes. No rank is a bottleneck, and *every* rank is a point of failure. (More of that in
# the [deadlock clinic](12_deadlock_clinic.ipynb).)
#
# ## The numbers of your machine
#
# So far $\alpha$ and $\beta$ were made up. To measure them, play ping-pong: rank 0 sends a message,
# rank 1 sends it back, and half of that time is one message. Repeat it, and take the median, so that
# a moment in which the computer was busy with something else does not count. The first turns warm up.
#
# **Predict:** from which size on does your machine need visibly longer than for a single byte?

# %% tags=["nbval-ignore-output"]
def ping_pong_seconds(sizes, turns):
    rank, medians = dist.get_rank(), []
    for nbytes in sizes:
        ball, taken = torch.zeros(nbytes, dtype=torch.uint8), []
        for _ in range(turns + 2):
            dist.barrier()
            started = time.perf_counter()
            if rank == 0:
                dist.send(ball, 1)
                dist.recv(ball, 1)
            else:
                dist.recv(ball, 0)
                dist.send(ball, 0)
            taken.append((time.perf_counter() - started) / 2)
        medians.append(statistics.median(taken[2:]))
    return medians


sizes = [4**k for k in range(12)]
seconds = run(ping_pong_seconds, 2, sizes, 15, seconds=60)[0]
for nbytes, taken in zip(sizes, seconds):
    print(f"{nbytes:10,} bytes: {1e6 * taken:9.1f} µs")

# %% [markdown]
# (A message here costs more than with bare `torch.distributed`, since the grader records each one.
# Your numbers differ from ours, and from run to run.)
#
# ### The best line
#
# We look for the $\alpha$ and $\beta$ that fit best: those for which the sum of squares
# $\sum_i (\alpha + \beta S_i - t_i)^2$ is least. For a line this has a well-known solution: with the
# means $\bar S$ and $\bar t$,
#
# $$\beta = \frac{\sum_i (S_i - \bar S)(t_i - \bar t)}{\sum_i (S_i - \bar S)^2}, \qquad
# \alpha = \bar t - \beta \bar S.$$
#
# There is a trap. Suppose a perfect machine, where only the largest message took 1 % too long.
# **Predict** the latency that the best line finds.

# %%
def best_line(sizes, seconds):
    x, y = statistics.mean(sizes), statistics.mean(seconds)
    products = sum((s - x) * (t - y) for s, t in zip(sizes, seconds))
    slope = products / sum((s - x) ** 2 for s in sizes)
    return y - slope * x, slope


perfect_sizes = [2**k for k in range(10, 31, 4)]
perfect = [ALPHA + BETA * s for s in perfect_sizes]
disturbed = [*perfect[:-1], 1.01 * perfect[-1]]
for name, times in (("perfect", perfect), ("disturbed", disturbed)):
    a, b = best_line(perfect_sizes, times)
    print(f"{name:9}: alpha {1e6 * a:8.3f} µs, beta {1e9 * b:.4f} ns per byte")

# %% [markdown]
# A *negative* latency: an empty message would arrive before it is sent. The 1 % was more time than
# all the latencies together, and the line tilted to follow it.
#
# It is tempting to replace the negative number by 0 and to keep the other. But that $\beta$ was the
# best only *together with* the negative $\alpha$. What we want is the best line **among those** that
# have neither below 0. If the best line of all is one of them, that is it. If not, the best allowed
# one lies on the border: where the best line has a negative $\alpha$, hold $\alpha$ at 0 and fit
# $\beta$ again, which gives $\beta = \sum S_i t_i / \sum S_i^2$. Where it has a negative $\beta$,
# hold $\beta$ at 0; the best $\alpha$ is then the mean $\bar t$. (Times are never negative, so these
# cannot be negative, either.)
#
# ## Exercise: fit alpha and beta
#
# Return `(alpha, beta)`, the least-squares optimum among all pairs in which neither is negative.
# There are at least two different sizes, in any order; a size may occur more than once. No time is
# negative.

# %%
def fit_alpha_beta(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """The alpha and beta, neither negative, that fit best in the sense of least squares."""
    ### BEGIN SOLUTION
    x, y = sum(sizes) / len(sizes), sum(seconds) / len(seconds)
    products = sum((s - x) * (t - y) for s, t in zip(sizes, seconds))
    beta = products / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    if alpha < 0:
        beta = sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
        return 0.0, beta
    if beta < 0:
        return y, 0.0
    return alpha, beta
    ### END SOLUTION


fit_known = check(fit_alpha_beta)
fit_known

# %% [markdown]
# Now the numbers of your machine:

# %% tags=["nbval-ignore-output"]
if fit_known:
    alpha, beta = fit_alpha_beta(sizes, seconds)
    print(f"alpha {1e6 * alpha:.1f} µs, beta {1e9 * beta:.3f} ns per byte")
    for nbytes, taken in zip(sizes, seconds):
        predicted = alpha + beta * nbytes
        print(f"{nbytes:10,} bytes: measured {1e6 * taken:9.1f} µs, the line {1e6 * predicted:9.1f} µs")

# %% [markdown]
# Look at both ends. Least squares count errors in seconds, and large messages have the large errors,
# so the line is good on the right and takes what it gets on the left. If it is the latency that you
# are after, fit the small sizes alone.
#
# ## Does the prediction come true?
#
# Now use what you have. Two numbers from *two* ranks predict the ring and the tree on *four*. Then
# let both run. A run lasts until its slowest rank is done, and again we take medians.
#
# **Predict:** will the ring win where your formula says so? What could be different from a
# ping-pong?

# %% tags=["nbval-ignore-output"]
def race(sizes, turns):
    """The slowest rank's median seconds of the ring and of the tree, for every size."""
    medians = []
    for nbytes in sizes:
        taken = {ring_sum: [], tree_sum: []}
        for turn in range(turns + 1):
            for algorithm in taken:  # in turns, so that a busy moment hits both
                x = torch.zeros(nbytes // 4)
                dist.barrier()
                started = time.perf_counter()
                algorithm(x)
                slowest = torch.tensor(time.perf_counter() - started, dtype=torch.float64)
                dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
                if turn:  # the first warms up
                    taken[algorithm].append(slowest.item())
        medians.append([statistics.median(times) for times in taken.values()])
    return medians


if ring_known and tree_known and crossing_known and fit_known:
    race_sizes = [4**k for k in range(3, 13)]
    raced = run(race, 4, race_sizes, 7, seconds=100)[0]
    print(f"predicted crossing: {crossover_bytes(4, alpha, beta):,.0f} bytes")
    print(f"{'milliseconds':16} ring: predicted  measured   tree: predicted  measured   faster")
    for nbytes, (ring, tree) in zip(race_sizes, raced):
        ring_on_paper = ring_all_reduce_seconds(4, nbytes, alpha, beta)
        tree_on_paper = tree_all_reduce_seconds(4, nbytes, alpha, beta)
        print(
            f"{nbytes:10,} bytes {1e3 * ring_on_paper:15.2f} {1e3 * ring:9.2f}"
            f" {1e3 * tree_on_paper:17.2f} {1e3 * tree:9.2f}   {'ring' if ring <= tree else 'tree'}"
        )

# %% [markdown]
# What holds on nearly every machine: the tree wins on the left, and the further you go to the right,
# the better the ring does. What often does *not* hold are the numbers. On a machine with few cores
# both take longer than predicted, the ring much more so, and the crossing comes later or not at all.
#
# Do not shrug it off; ask the data why. Your `fit_alpha_beta` can look at the ring itself: one of its
# steps is a message of $S/n$ bytes, and takes $1/(2(n-1))$ of the time. In the same way it can look at
# the tree. If the model were perfect, all three lines below would be the same.

# %% tags=["nbval-ignore-output"]
def seen_by(name, message_sizes, message_seconds):
    a, b = fit_alpha_beta(message_sizes, message_seconds)
    print(f"{name:10}: alpha {1e6 * a:8.1f} µs, beta {1e9 * b:7.3f} ns per byte")


if ring_known and tree_known and crossing_known and fit_known:
    n, levels = 4, 2
    seen_by("ping-pong", sizes, seconds)
    seen_by("tree", race_sizes, [tree / (2 * levels) for _, tree in raced])
    seen_by("ring", [s / n for s in race_sizes], [ring / (2 * (n - 1)) for ring, _ in raced])

# %% [markdown]
# The ring usually sees the most expensive bytes. In a ping-pong *one* message travels at a time. In a
# step of the ring *four* do, and on one computer "travelling" is copying by its processor cores.
# Where four messages share the work of two cores, each takes longer: our second rule is broken. How
# much there is to carry in all can be counted:

# %%
for n in (4, 8):
    for algorithm in (ring_sum, tree_sum):
        sent = traces[algorithm, n].traffic
        print(f"{n} ranks, {algorithm.__name__}: {sent.messages:3} messages, {sent.bytes} bytes in all")

# %% [markdown]
# The bytes are the same, $2(n-1)S$ for both! The ring is faster only because it carries them *at the
# same time*, over links that would rest otherwise. On a network every rank has its own link, and the
# ring uses all of them. On one small computer all ranks share the same memory and the same few cores,
# and there is not much left to gain, but $n$ times as many messages to pay for.
#
# So this is what a model is good for, even where it is wrong: it says what to expect *if* its rules
# hold, and the difference tells you which of them does not.
#
# ### What the model leaves out
#
# - **Sharing:** cores, memory, links in the middle of a network that many pairs use.
# - **Adding up** costs something, too. The full model has a third number for it.
# - **Levels:** within a machine and between machines there are different $\alpha$ and $\beta$.
# - **Pieces:** a large message can be cut and pipelined, as in the end of chapter 11.
# - **Chance:** one late rank makes everybody late.
#
# ## Hundreds of ranks on your computer
#
# A formula is one way to use the model. The other is to *execute* it. `simulate` runs a function as
# `run` does, but all ranks live in one process, and time is a number that the simulator counts up: a
# message of $S$ bytes takes $\alpha + \beta S$, a rank has one port to send and one to receive, and
# computing takes no time. Those are the rules from above. What is *not* made up is your program: it
# really runs, on every rank, and its sums are really added.
#
# Here is the ring once more, the same `ring_sum` as in the beginning. (Let it call the `ring_all_reduce`
# that you wrote in [chapter 11](11_ring_all_reduce.ipynb), if you like. That needs no change, either.)
#
# **Predict:** on 256 ranks, how many messages are there? How long does the ring take, if $\alpha$ is
# 10 µs and there are only 4 kB to sum?

# %%
right = all(simulate(all_same, 64, ring_sum))
print("ring_sum: as dist.all_reduce on 64 simulated ranks:", right)

few = torch.ones(1024)  # 4 bytes each: 4096 bytes
rings = {n: simulate(ring_sum, n, few, alpha=ALPHA, beta=BETA) for n in (2, 5, 8, 64, 256)}
for n in (8, 256):
    print(rings[n])

# %% [markdown]
# 510 latencies, one after the other: more than 5 ms, for 4 kB.
#
# Times of a simulation do not vary. They are sums of whole numbers (of ticks of $10^{-21}$ s), and
# ranks take their turns in a fixed order, so you get the same digits again, on every computer. Does
# your formula get them, too? It need not round, either: give it fractions.

# %%
if ring_known:
    ten_us, tenth_ns = Fraction(1, 10**5), Fraction(1, 10**10)
    for n, simulated in rings.items():
        on_paper = ring_all_reduce_seconds(n, Fraction(4096), ten_us, tenth_ns)
        print(
            f"{n:3} ranks: formula {1e6 * float(on_paper):12.6f} µs, simulated"
            f" {1e6 * simulated.seconds:12.6f} µs, the same: {float(on_paper) == simulated.seconds}"
        )

# %% [markdown]
# To the last digit, where $n$ divides the tensor. On 5 ranks the formula sends 204.8 numbers at a
# time, and your program cannot: some chunks have 205.
#
# ### Ring against tree, to 1024 ranks
#
# You know where they cross on paper. Now look at two programs that know nothing of the paper.
#
# **Predict:** from which number of ranks on does the tree win with 4 kB? And with 262 kB?

# %%
def simulated_seconds(algorithm, n, nbytes):
    return simulate(algorithm, n, torch.ones(nbytes // 4), alpha=ALPHA, beta=BETA).seconds


# a ring of 1024 ranks would send two million messages: we stop at 128
two_sizes, powers = (2**12, 2**18), [2**k for k in range(1, 11)]
ringed = {(n, s): simulated_seconds(ring_sum, n, s) for s in two_sizes for n in powers[:7]}
treed = {(n, s): simulated_seconds(tree_sum, n, s) for s in two_sizes for n in powers}
for nbytes in two_sizes:
    print(f"{nbytes:,} bytes, milliseconds")
    for n in powers:
        tree = treed[n, nbytes]
        if (n, nbytes) in ringed:
            ring = ringed[n, nbytes]
            faster = "ring" if ring <= tree else "tree"
            print(f"{n:5} ranks: ring {1e3 * ring:7.3f}, tree {1e3 * tree:7.3f}   {faster}")
        else:
            print(f"{n:5} ranks: ring       -, tree {1e3 * tree:7.3f}")

# %%
if crossing_known:
    for n in (8, 16):
        print(f"{n:2} ranks: your formula lets them cross at {crossover_bytes(n, ALPHA, BETA):,.0f} bytes")

# %% [markdown]
# With 262 kB the ring wins on 8 ranks and the tree on 16, and the size lies between your two
# crossings. In the picture, marks are simulated and lines are your formulas: every mark is on its
# line. The tree rises by one step for each doubling of $n$; the ring goes up with $n$ itself, whatever
# the size. On the left, with little data, they part at once. On the right the ring begins below the
# tree, and the lines cross between 8 and 16 ranks.

# %% tags=["nbval-ignore-output"]
if ring_known and tree_known:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    ways = (
        ("ring", ringed, ring_all_reduce_seconds, "o", "#0072B2", "-"),
        ("tree", treed, tree_all_reduce_seconds, "s", "#D55E00", "--"),
    )
    for panel, nbytes in zip(panels, two_sizes):
        for name, times, formula, mark, colour, line in ways:
            paper = [1e3 * formula(n, nbytes, ALPHA, BETA) for n in powers]
            panel.plot(powers, paper, line, color=colour, label=f"{name}, your formula")
            seen = [(n, 1e3 * seconds) for (n, s), seconds in times.items() if s == nbytes]
            panel.plot(*zip(*seen), mark, color=colour, label=f"{name}, simulated")
        panel.set(xscale="log", yscale="log", xlabel="ranks", title=f"{nbytes:,} bytes")
        panel.set_xticks(powers, [str(n) for n in powers])
        panel.set_yticks((0.1, 1, 10), ("0.1", "1", "10"))
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("milliseconds")
    panels[0].legend()
    plt.show()

# %% [markdown]
# ### What would a library do?
#
# `dist.all_reduce` runs on simulated ranks, too, and you choose by which algorithm. (An unknown name
# is answered with those that are known;
# [docs/simulation.md](../docs/simulation.md#built-in-collectives-by-algorithm) lists them with their
# costs and sources.)
#
# **Predict:** which one is best on 64 ranks for a few bytes? Which for a megabyte? Below stands what
# no algorithm can beat.

# %%
def built_in(x):
    dist.all_reduce(x)


some_sizes = (256, 2**16, 2**20)
print(f"{'ms on 64 ranks':20}" + "".join(f"{nbytes:>11,}" for nbytes in some_sizes) + "  bytes")
for name in ("linear", "reduce_broadcast", "ring", "recursive_doubling", "rabenseifner"):
    row = ""
    for nbytes in some_sizes:
        x = torch.ones(nbytes // 4)
        chosen = simulate(built_in, 64, x, alpha=ALPHA, beta=BETA, algorithms={"all_reduce": name})
        row += f"{1e3 * chosen.seconds:11.4f}"
    print(f"{name:20}{row}")
for model in (halving_seconds, bound_seconds):
    row = "".join(f"{1e3 * model(64, nbytes, ALPHA, BETA):11.4f}" for nbytes in some_sizes)
    print(f"{model.__name__:20}{row}")

# %% [markdown]
# `reduce_broadcast` is our tree, and `rabenseifner` our halving. In `recursive_doubling` all ranks
# exchange whole tensors with a partner, then with one twice as far away, and so on: with
# $\lceil \log_2 n \rceil$ rounds it meets the bound on rounds, and pays for a whole tensor in each of them.
# It is the one for a few bytes. ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521)
# describe all three; the bound on rounds is in
# [Chan and others 2007](https://doi.org/10.1002/cpe.1206), that on bytes in
# [Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002).)
#
# ### Who is whose neighbour
#
# We said that the model does not know it. A *cluster of two levels* does: eight computers with eight
# ranks each. Inside, messages are fast; between, all ranks of a computer share **one** network card of
# 10 Gbit/s. The ranks of a ring can be laid out in two ways:
#
# - one computer after the other: only one rank of each sends to another computer;
# - in turns, as one deals cards: *every* rank sends to another computer.
#
# First only the card. **Predict:** $k$ ranks of one computer each send a megabyte to another
# computer, all at the same time. When does each arrive?

# %%
CARD = 8 / 10e9  # seconds a byte


def computers(ranks_each, order=(), sharing="max-min"):
    return Nodes(
        ranks_per_node=ranks_each,
        alpha_inside=1e-6,
        beta_inside=1e-11,
        alpha_between=ALPHA,
        beta_between=CARD,
        links=1,
        sharing=sharing,
        order=order,
    )


def arrival_of_a_megabyte():
    rank, k = dist.get_rank(), dist.get_world_size() // 2
    megabyte = torch.zeros(10**6, dtype=torch.uint8)
    if rank < k:
        dist.send(megabyte, rank + k)
    else:
        dist.recv(megabyte, rank - k)
    return time.perf_counter()  # of the virtual clock


for sharing in ("max-min", "fifo"):
    for k in (1, 2, 4):
        times = simulate(arrival_of_a_megabyte, 2 * k, cluster=computers(k, sharing=sharing))
        print(f"{sharing:8} {k} at a time, µs:", [round(1e6 * seconds) for seconds in times[k:]])

# %% [markdown]
# Each megabyte needs 800 µs of the card, so the last of $k$ has arrived after $\alpha + k \beta S$,
# whichever way the card is shared: fairly, all at a time (`max-min`), or one after the other (`fifo`).
# The latencies pass at the same time and count once.
#
# Now the ring. In a step each rank sends a chunk of $S/n$ bytes. Laid out one computer after the other,
# the card carries one chunk a step. Dealt like cards, it carries eight. **Predict** how many times as
# long the second ring takes.

# %%
dealt = tuple(rank for first in range(8) for rank in range(first, 64, 8))  # 0, 8, 16, … share a computer

for nbytes in (2**14, 2**18, 2**22):
    x, chunk = torch.ones(nbytes // 4), nbytes // 64
    near = simulate(ring_sum, 64, x, cluster=computers(8)).seconds
    far = simulate(ring_sum, 64, x, cluster=computers(8, order=dealt)).seconds
    one, eight = ALPHA + CARD * chunk, ALPHA + 8 * CARD * chunk
    print(
        f"{nbytes:9,} bytes: by computer {1e3 * near:7.3f} ms, dealt {1e3 * far:7.3f} ms,"
        f" factor {far / near:.4f}; the model says {eight / one:.4f}"
    )

# %% [markdown]
# Same program, same ranks, same messages; only who sits where has changed. Little data hides it, since
# latencies are not shared; much data pays nearly eight times. Note also what the ring by computer takes:
# $2(n-1)(\alpha + \beta S/n)$ with the card's numbers, although 56 of its 64 links are fast. All go at
# the pace of the slowest. This is why libraries look at how a machine is wired before they lay a ring,
# as NCCL does
# ([its search](https://github.com/NVIDIA/nccl/blob/5067397c2676d5aed50042fc39e5c8ee96eb0027/src/graph/search.cc)).
#
# ### A deadlock that hides
#
# In chapter [01](01_point_to_point.ipynb) a `send` waited for its `recv`: a **synchronous** send, which MPI
# libraries call the *rendezvous protocol*. Many libraries copy a *small* message aside and let the sender
# go on (an **eager** send); how small depends on the library. **Predict:** every rank sends first, and
# then receives. What happens with 1 kB, and what with 100 kB, if up to 4 kB are sent eagerly?

# %%
def everybody_sends_first(elements):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty(elements)
    dist.send(torch.ones(elements), (rank + 1) % n)
    dist.recv(came, (rank - 1) % n)


for elements in (256, 25_600):
    tried = simulate(everybody_sends_first, 128, elements, eager=4096, may_fail=True)
    stuck = len(tried.failure.waits) if tried.failure else 0
    print(f"{4 * elements:7,} bytes: {stuck} of 128 ranks wait for ever")

# %% [markdown]
# The program was wrong both times. An eager send had only hidden it, and more data, or another library,
# brings it out. gloo never sends eagerly, so what passes `check` does not depend on such luck; nor does
# `simulate`, unless you ask for `eager`.
#
# ### Simulated, and real
#
# How far can you trust it? Take the $\alpha$ and $\beta$ that *you measured* above, with two ranks and a
# ping-pong. Simulate the ring with them, and run the very same function for real. (The 8 real ranks
# share the cores of your computer.)
#
# **Predict:** where will prediction over measurement be near 1: for small or for large tensors, for few
# or for many ranks?

# %% tags=["nbval-ignore-output"]
def ring_of(nbytes):
    ring_sum(torch.zeros(nbytes // 4))


def ring_taken(sizes, turns):
    """The slowest rank's median seconds of the ring, for every size."""
    medians = []
    for nbytes in sizes:
        x, taken = torch.zeros(nbytes // 4), []
        for turn in range(turns + 1):
            dist.barrier()
            started = time.perf_counter()
            ring_sum(x)
            slowest = torch.tensor(time.perf_counter() - started, dtype=torch.float64)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if turn:  # the first warms up
                taken.append(slowest.item())
        medians.append(statistics.median(taken))
    return medians


if fit_known:
    ring_sizes = [4**k for k in range(5, 13)]  # 1 KiB to 16 MiB
    print("milliseconds: predicted, measured, and predicted / measured")
    print(" " * 16 + "".join(f"{n:>17} ranks" for n in (2, 4, 8)))
    foreseen, measured = {}, {}
    for n in (2, 4, 8):
        measured[n] = run(ring_taken, n, ring_sizes, 3, seconds=100)[0]
        foreseen[n] = [
            simulate(ring_of, n, nbytes, alpha=alpha, beta=beta).seconds for nbytes in ring_sizes
        ]
    for i, nbytes in enumerate(ring_sizes):
        row = ""
        for n in (2, 4, 8):
            model, real = 1e3 * foreseen[n][i], 1e3 * measured[n][i]
            row += f"{model:9.2f}{real:8.2f}{model / real:6.2f}"
        print(f"{nbytes:10,} bytes{row}")

# %% tags=["nbval-ignore-output"]
if fit_known:
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7, 4), layout="constrained")
    for n, mark, colour in ((2, "o-", "#0072B2"), (4, "s--", "#D55E00"), (8, "^:", "#009E73")):
        ratios = [model / real for model, real in zip(foreseen[n], measured[n])]
        panel.plot(ring_sizes, ratios, mark, color=colour, label=f"{n} ranks")
    panel.axhline(1, color="black", linewidth=1)
    panel.set(xscale="log", yscale="log", xlabel="KiB", ylabel="predicted / measured")
    panel.set_xticks(ring_sizes, [f"{nbytes // 1024:,}" for nbytes in ring_sizes])
    panel.set_yticks((0.1, 0.2, 0.5, 1, 2), ("0.1", "0.2", "0.5", "1", "2"))
    panel.minorticks_off()
    panel.grid(alpha=0.3)
    figure.legend(loc="outside right upper")
    plt.show()

# %% [markdown]
# The picture has a curve for each number of ranks: predicted over measured time, and a black line at 1,
# where the prediction is right. Below the line the real ring took longer than foreseen. Yours differ from
# ours and from run to run, but on a computer with few cores this is what to expect: every curve is below
# the line, and the more ranks, the further below.
#
# What is off, and why?
#
# - **Cores are shared.** In a step of the model $n$ messages travel at the same time, each for the price of
#   one. Here they are all carried by the same few cores. Eight ranks on two cores also wait for each other
#   just to get their turn, at every message; that is why their curve is low even for the smallest tensors.
# - **Computing is free in the model.** Your computer runs Python for each step, and adds up every chunk; for
#   large tensors also the memory has to carry all that.
# - **A step is not half a ping-pong.** It starts a send, receives, and waits for the send; two processes have
#   to wake up in it, not one.
# - **$\alpha$ and $\beta$ are a fit**, better at its right end than at its left one, as you saw.
#
# None of it is in a model of a *network*. On a cluster where every rank has its own cores and its own link,
# the first of them is gone.
#
# ### What a simulation leaves out
#
# It is the model that runs, and so it knows what the model knows. For all results beyond your own cores
# keep in mind what is missing:
#
# - **Computing, and copying.** Adding up is free, and so is memory. (`time.sleep` lets virtual time
#   pass: with it a program can say how long it computes.)
# - **Congestion.** A network between computers is never full here, and nothing is lost or slowed down to
#   avoid that. Shared cards are simulated, as you saw; switches and routes are not.
# - **Message rate.** A card sends any number of messages per second, and matching them costs nothing.
# - **Noise.** The operating system never interrupts a rank, so nobody is ever late by chance. On
#   thousands of ranks somebody always is
#   ([Petrini, Kerbyson and Pakin 2003](https://doi.org/10.1145/1048935.1050204)).
#
# What it *does* show is what does not depend on all that: whether a program is right on hundreds of
# ranks, how its messages and rounds grow, who waits for whom. `check` uses it for exactly this: it has run
# your rings of chapters 05, 06 and 11 on 64 and 256 simulated ranks.
#
# ## Summary
#
# - A message costs $\alpha + \beta S$. Below $S = \alpha/\beta$ count messages, above it count bytes.
# - An algorithm in rounds costs the sum of the largest messages of its rounds.
# - Ring: $2(n-1)(\alpha + \beta S/n)$. Tree: $2\lceil \log_2 n \rceil(\alpha + \beta S)$.
# - From four ranks on, this tree of whole messages wins for small tensors and the ring for large ones; they
#   cross at
#   $\frac{n-1-\lceil \log_2 n \rceil}{\lceil \log_2 n \rceil - (n-1)/n} \cdot \frac{\alpha}{\beta}$ bytes.
# - No all-reduce takes fewer than $\lceil \log_2 n \rceil$ rounds, or sends less than $2\frac{n-1}{n}S$
#   from its busiest rank. Halving and doubling comes within a factor of two of both at once, where $n$
#   is a power of two.
# - A fit has to respect what the numbers mean: the best among the *allowed* lines is not the best line
#   with its negative numbers set to zero.
# - A prediction that fails names a rule that does not hold.
# - A simulation executes the model: the same function, on hundreds of ranks, in exact virtual time. It shows
#   how a program grows and where ranks share a link; it knows nothing that its model leaves out.
#
# **Where this is used:** in MPI libraries and in
# [NCCL](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html) to choose an algorithm
# for each size; in planning, to say how long a step of training will wait for its gradients before
# anybody has bought a machine.
#
# ### Check yourself
#
# <details><summary>A network has a latency of 5 µs and 200 Gbit/s. Which messages are small on it?</summary>
#
# 200 Gbit/s are 25 GB/s, so β is 0.04 ns per byte, and α/β = 125,000 bytes. Messages well below that
# cost their latency, whatever their size.
# </details>
#
# <details><summary>You have 1000 tensors of 10 kB each to all-reduce. How can the model help you?</summary>
#
# Put them into one tensor of 10 MB: the bytes cost the same, and 999 times the latencies of an
# all-reduce are saved. Data-parallel training does this with its gradients and calls it bucketing.
# </details>
#
# <details><summary>The latency of your network is halved. Where do ring and tree cross now?</summary>
#
# At half the size: the crossing is proportional to α/β.
# </details>
#
# <details><summary>You measure all-reduces of one size only. Can you fit α and β?</summary>
#
# No. Every pair with α + βS = t fits equally well. It takes at least two sizes, and better a wide range of
# them.
# </details>
#
# **Next:** [14 · Bandwidth](14_bandwidth.ipynb): how fast is a collective, and how fast could it be?
