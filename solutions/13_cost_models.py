# %% [markdown]
# # 13 · Cost models
#
# **You will learn** to say how long a collective takes *before* it runs, from two numbers: what a
# message costs, and what a byte costs. You find out when a ring is faster than a tree and when it is
# not, measure the two numbers of your own machine, and see how far the prediction holds.
#
# **You need** chapter [11](11_ring_all_reduce.ipynb): the ring, the tree, rounds. Nothing but school
# algebra.
#
# **Time:** 1 hour and a half, and 4 exercises. All four are plain functions; nothing is sent in them.

# %%
import math
import statistics
import time

import torch
import torch.distributed as dist

from grader import check, hint, run

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
# ## Summary
#
# - A message costs $\alpha + \beta S$. Below $S = \alpha/\beta$ count messages, above it count bytes.
# - An algorithm in rounds costs the sum of the largest messages of its rounds.
# - Ring: $2(n-1)(\alpha + \beta S/n)$. Tree: $2\lceil \log_2 n \rceil(\alpha + \beta S)$.
# - From four ranks on, the tree wins for small tensors and the ring for large ones; they cross at
#   $\frac{n-1-\lceil \log_2 n \rceil}{\lceil \log_2 n \rceil - (n-1)/n} \cdot \frac{\alpha}{\beta}$ bytes.
# - No all-reduce takes fewer than $\lceil \log_2 n \rceil$ rounds, or sends less than $2\frac{n-1}{n}S$
#   from its busiest rank. Halving and doubling comes within a factor of two of both at once, where $n$
#   is a power of two.
# - A fit has to respect what the numbers mean: the best among the *allowed* lines is not the best line
#   with its signs mended.
# - A prediction that fails names a rule that does not hold.
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
