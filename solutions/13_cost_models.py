# %% [markdown]
# # 13 · Cost models
#
# Your job is going to run on 512 GPUs. Will the all-reduce of its gradients take a millisecond or a
# second? Should it be a ring or a tree? And would twice as many GPUs make it faster or slower? You would
# like to know before you book the machine.
#
# **You will learn** to say how long a collective takes *before* it runs, from two numbers: what a
# message costs, and what a byte costs. You will find out when a ring is faster than a tree and when it
# is not, measure the two numbers on your own machine, and see how far the prediction holds. Then you
# will run the same functions on hundreds of simulated ranks.
#
# **You need** chapter [11](11_ring_all_reduce.ipynb): the ring, the tree, rounds. High-school algebra is
# enough.
#
# **Time:** 2 hours, and 4 exercises. All four are plain functions; nothing is sent in them.

# %%
import math
import statistics
import time
from fractions import Fraction

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from headcount.simulation.clusters import Nodes

# %% [markdown]
# ## One message
#
# Post a letter of one page, and then a letter of a hundred. The second takes longer to write, but the
# walk to the letter box is the same. So it is with messages: you pay something for *each message*, and
# something for *each byte*.
#
# $$t(S) \;=\; \alpha + \beta S$$
#
# | | name | unit |
# |---|---|---|
# | $\alpha$ | latency, the cost of a message however small | seconds |
# | $\beta$ | cost of a byte, one divided by the bandwidth | seconds per **byte** |
# | $S$ | size | bytes |
#
# This is the **alpha-beta model** ([Chan and others 2007](https://doi.org/10.1002/cpe.1206) use it to compare
# all collectives). [LogP](https://doi.org/10.1145/155332.155333) and
# [LogGP](https://doi.org/10.1145/215399.215427) are more exact: they also count the processor's work for a
# message, and the gap between two messages. This one is simple enough to think with.
#
# Take $\alpha = 10$ µs and a link of 80 Gbit/s. Networks are sold in *bits* per second, and there
# are 8 in a byte: 80 Gbit/s is 10 GB/s, so $\beta = 0.1$ ns per byte.
#
# **Predict:** how much longer than an empty message do 1000 bytes take? And a million bytes?
#
# <details><summary>A tenth longer, and a hundred times as long</summary>
#
# No: β is 0.1 ns, so 1000 bytes add 0.1 µs to the 10 µs, and a million bytes add 100 µs.
# </details>
#
# <details><summary>A hundredth longer, and eleven times as long</summary>
#
# Yes: 10.1 µs, and 110 µs.
# </details>
#
# <details><summary>Hardly longer, and hardly longer</summary>
#
# No for the million: its bytes take 100 µs, ten times the latency.
# </details>

# %%
ALPHA, BETA = 10e-6, 8 / 80e9

for nbytes in (0, 1, 1000, 10**5, 10**6, 10**9):
    seconds = ALPHA + BETA * nbytes
    print(f"{nbytes:13,} bytes: {1e6 * seconds:12,.1f} µs, of which latency {ALPHA / seconds:7.2%}")

# %% [markdown]
# Well below some size only the *number* of messages counts, well above it only the *bytes*. The boundary
# is where both cost the same, $S = \alpha/\beta$: here 100,000 bytes. Anything well below it is a "small"
# message on this network.
#
# ## From messages to a collective
#
# A collective consists of many messages, and many of them travel at the same time. To add up its cost
# we need rules. These are the usual ones:
#
# - a rank can send one message **and** receive one at the same time, no more;
# - messages between different pairs of ranks do not disturb each other;
# - adding numbers up costs nothing.
#
# A round, in which each rank sends and receives at most one message, then takes as long as its largest
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
        received = buffer[: len(mine)] if adding else mine
        request = dist.isend(gives, (rank + 1) % n)
        dist.recv(received, (rank - 1) % n)
        request.wait()
        if adding:
            mine += received


def tree_sum(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    steps = [2**i for i in range(n) if 2**i < n]
    for s in steps:  # up: a rank that has sent is done
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(received, rank + s)
            x += received
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
    print(f"{algorithm.__name__}: like dist.all_reduce on 1, 2, 3, 4, 5, 8 ranks:", all(right))

# %% [markdown]
# The record of a run holds every message and the round in which it travels. So the computer can count
# what the model says:

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
# Look at the rounds of the ring on 4 ranks: six of them, each with 840 bytes. How many rounds are there for
# $n$ ranks and $S$ bytes, and how many bytes are in each? Write the formula.
#
# ## Exercise: the ring's seconds
#
# `nbytes` is the size of the whole tensor, `alpha` is in seconds, `beta` in seconds per byte. All
# messages of a round are chunks of $S/n$ bytes. The model does not insist on whole bytes, so do not
# round. A single rank has nothing to send.

# %%
def ring_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float:
    """Seconds of a ring all-reduce in the alpha-beta model."""
    ### BEGIN SOLUTION
    return 2 * (n - 1) * (alpha + nbytes / n * beta)
    ### END SOLUTION


ring_known = check(ring_all_reduce_seconds)
ring_known

# %% [markdown]
# Does your formula agree with the messages that were sent?

# %%
if ring_known:
    for n in (1, 2, 3, 4, 5, 8):
        counted = counted_seconds(traces[ring_sum, n], ALPHA, BETA)
        formula = ring_all_reduce_seconds(n, 3360, ALPHA, BETA)
        print(f"{n} ranks: counted {1e6 * counted:7.3f} µs, your formula {1e6 * formula:7.3f} µs")

# %% [markdown]
# ## The tree
#
# A binomial tree reduces to rank 0 and then broadcasts from it. Every message is the whole tensor. On
# the way down, the number of ranks that have the result at most doubles in every round.
#
# **Predict:** how many rounds does the way down take on 2 ranks, on 3, on 8?
#
# <details><summary>1, 2, 7</summary>
#
# No: on 8 ranks, the second to get the result also hands it on. Not all seven hear from rank 0.
# </details>
#
# <details><summary>1, 1, 3</summary>
#
# No: after one round two ranks have the result, and on 3 ranks one is still without.
# </details>
#
# <details><summary>1, 2, 3</summary>
#
# Yes: 1, 2, 4, 8 ranks have it after 0, 1, 2, 3 rounds, and 3 ranks need as many as 4.
# </details>

# %%
for n in (1, 2, 3, 4, 5, 8):
    rounds = largest_in_each_round(traces[tree_sum, n])
    print(f"{n} ranks: {len(rounds)} rounds up and down, bytes in each: {sorted(set(rounds))}")

# %% [markdown]
# Half of the rounds lead up and half lead down: $\lceil \log_2 n \rceil$ each way, $\log_2 n$ rounded
# up. That is how many times you must double 1 to reach $n$ or pass it.
#
# Computers round logarithms. Most of the time you do not notice:

# %%
for power in (3, 10, 29):
    n = 2**power
    print(f"log₂ of 2^{power}: math.log2 {math.log2(n)}, math.log(n, 2) {math.log(n, 2)}")

# %% [markdown]
# The last number, rounded up, is 30. With whole numbers there is nothing to round: Python's
# `(n - 1).bit_length()` is $\lceil \log_2 n \rceil$ for every $n \ge 1$.
#
# ## Exercise: the tree's seconds
#
# The arguments are those of the ring's formula. Count the way up and the way down.

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
# The tree has fewer latencies, the ring fewer bytes. So you would take the tree for a single number, and the
# ring for the gradients of a large model.
#
# **Predict:** where do they change places, on 64 ranks with $\alpha = 10$ µs and 10 GB/s?
#
# <details><summary>At about a megabyte</summary>
#
# Yes: only there do the bytes that the ring saves outweigh its 114 additional latencies.
# </details>
#
# <details><summary>At about 100 kilobytes</summary>
#
# No: that is α/β, where the bytes of a <em>single</em> message begin to count. The ring has 126 messages
# in a row.
# </details>
#
# <details><summary>At about 100 megabytes</summary>
#
# No: there a whole tensor takes 10 ms to travel, and the tree sends it 12 times in a row.
# </details>

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
# So there is no winner without a size: for a single number the tree is ten times as fast, for a gigabyte
# the ring is six times as fast. (That is true of this tree, which sends whole tensors. Trees that cut them
# into pieces, and pipeline the pieces, are good at both ends:
# [Sanders, Speck and Träff 2009](https://doi.org/10.1016/j.parco.2009.09.001).)
#
# ![Seconds over the size of the tensor on 8, 64 and 1024 ranks, both axes logarithmic. In each panel
# the curve of the tree is below that of the ring for small sizes, and above it for large ones. The
# crossing is marked; the more ranks, the larger the size at which they cross.](../imgs/cost_curves.png)
#
# Each curve is flat on the left, where the latency counts, and rises on the right, where the bytes do.
# With more ranks the crossing moves to the right: a ring of 1024 has 2046 latencies in a row, and only
# a large tensor makes up for that.
#
# ## Exercise: the crossing
#
# Return the size from which the ring is **no slower** than the tree. Set the two formulas equal and
# solve for $S$. The result is seldom a whole number of bytes; do not round it.
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
# Before you look for a better algorithm, it helps to know what *no* algorithm can do, under the rules
# above: ranks talk point to point, each receives one message at a time, and only ranks can add.
# (A switch that adds on the way breaks the last rule, and with it both bounds.)
#
# **Rounds.** Every rank's result depends on every rank's input. After one round a rank can know of two
# inputs at most, its own and one other; after two rounds of four; after $k$ rounds of $2^k$. So it
# takes at least $\lceil \log_2 n \rceil$ rounds.
#
# **Bytes.** Some rank has to send at least $2\frac{n-1}{n}S$ bytes, one after the other
# ([Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)).
#
# Such bounds for all the collectives are in
# [Chan, Heimlich, Purkayastha and van de Geijn 2007](https://doi.org/10.1002/cpe.1206). The tree takes
# twice as many rounds as the first bound, and many more bytes than the second. The ring meets the bound
# on bytes exactly, and takes many more rounds.
#
# Is there an algorithm that is good at both? If $n$ is a power of two, yes. In the first round you
# exchange *halves* with a rank that is $n/2$ away, and each of the two adds up the half that it keeps.
# Then you exchange quarters with a rank that is $n/4$ away, and so on: that is a reduce-scatter. Going
# back the same way is an all-gather.
#
# **Predict:** how many bytes are in each round on 8 ranks, if the tensor has 3360?
#
# <details><summary>420, 420, 420, 420, 420, 420</summary>
#
# No: those would be the chunks of a ring, and six of them are too few. Here each round halves what is
# sent.
# </details>
#
# <details><summary>3360, 1680, 840, 840, 1680, 3360</summary>
#
# No: already in the first round only halves are exchanged.
# </details>
#
# <details><summary>1680, 840, 420, 420, 840, 1680</summary>
#
# Yes: a half, a quarter, an eighth, and the same way back.
# </details>

# %%
def halving_sum(x):
    """An all-reduce for powers of two; x can be halved that often."""
    rank, distance, mine = dist.get_rank(), dist.get_world_size() // 2, x
    way = []
    while distance:
        peer = rank ^ distance
        low, high = mine.tensor_split(2)
        mine, gives = (low, high) if rank < peer else (high, low)
        received = torch.empty_like(mine)
        request = dist.isend(gives, peer)
        dist.recv(received, peer)
        request.wait()
        mine += received
        way.append((peer, mine, gives))
        distance //= 2
    for peer, mine, missing in reversed(way):
        request = dist.isend(mine, peer)
        dist.recv(missing, peer)
        request.wait()


right = [all(run(all_same, n, halving_sum)) for n in (1, 2, 4, 8)]
print("halving_sum: like dist.all_reduce on 1, 2, 4, 8 ranks:", all(right))
for n in (4, 8):
    rounds = largest_in_each_round(run(halving_sum, n, x).trace)
    print(f"{n} ranks: {rounds}, in all {sum(rounds)} = {sum(rounds) / 3360} S")

# %% [markdown]
# It takes as many rounds as the tree, and as few bytes as the ring:
# $2 \log_2 n \,\alpha + 2\frac{n-1}{n} \beta S$. This is Rabenseifner's algorithm.
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
# In this model, and on a power of two, halving is never slower than the ring or the tree. So why are
# there rings at all? Look at our second rule: "messages between different pairs of ranks do not disturb
# each other". In the first round of the halving every rank talks across half of the machine, over links
# that others need as well. On the ring every rank talks to a neighbour. The model does not know which
# ranks are neighbours.
#
# ## The numbers of your machine
#
# So far $\alpha$ and $\beta$ were made up. To measure them, play ping-pong: rank 0 sends a message, rank
# 1 sends it back, and half of that time is one message. Repeat it and take the median, so that a moment
# in which the computer was busy with something else does not count. The first two rounds only warm up,
# and are discarded.
#
# On your machine, at what size does a message begin to take visibly longer than a single byte?

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

# %% tags=["claim"]
assert seconds[-1] > 1.5 * max(seconds[:7]), "4 MiB take visibly longer than any small message"

# %% [markdown]
# (A message costs more here than with bare `torch.distributed`, since the grader records each one.
# Your numbers will differ from ours, and from run to run.)
#
# Up to some tens of kilobytes the times go up and down by chance, and a single byte may well take longer
# than a thousand. What you see there is the latency. Only the last rows take visibly longer.
#
# ### The best line
#
# We look for the $\alpha$ and $\beta$ that fit best: those for which the sum of squares
# $\sum_i (\alpha + \beta S_i - t_i)^2$ is least. For a line the solution is well known. With the means
# $\bar S$ and $\bar t$,
#
# $$\beta = \frac{\sum_i (S_i - \bar S)(t_i - \bar t)}{\sum_i (S_i - \bar S)^2}, \qquad
# \alpha = \bar t - \beta \bar S.$$
#
# There is a trap. Take a perfect machine with a latency of 10 µs, on which only the largest message, a
# gigabyte, took 1 % too long.
#
# **Predict:** what latency does the best line find?
#
# <details><summary>A little more than 10 µs</summary>
#
# No: the one long time tilts the line upwards on the right, and so downwards on the left.
# </details>
#
# <details><summary>Exactly 10 µs</summary>
#
# No: small messages would say so. But the line has to pass between all points, and the large one pulls
# hardest.
# </details>
#
# <details><summary>Less than zero</summary>
#
# Yes: 1 % of the largest time is a millisecond, a hundred times the latency, and the line tilts to follow
# it.
# </details>

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
# A *negative* latency: an empty message would arrive before it is sent.
#
# It is tempting to replace the negative number by 0 and keep the other. But that $\beta$ was the best
# only *together with* the negative $\alpha$. What we want is the best line **among those** in which
# neither number is below 0. If the best line of all is one of them, we are done. If not, the best
# allowed one lies on the border. If the best line has a negative $\alpha$, hold $\alpha$ at 0 and fit
# $\beta$ again, which gives $\beta = \sum S_i t_i / \sum S_i^2$. If it has a negative $\beta$, hold
# $\beta$ at 0; the best $\alpha$ is then the mean $\bar t$. (Times are never negative, so these cannot
# be negative either.)
#
# ## Exercise: fit alpha and beta
#
# Return `(alpha, beta)`, the least-squares optimum among all pairs in which neither is negative. The
# sizes come in any order, and a size may occur more than once, but at least two are different. No time
# is negative.

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
# Look at both ends. Least squares counts errors in seconds, and large messages have the largest errors,
# so the line follows the large sizes and may miss the smaller ones. For the latency alone, fit the small
# sizes alone.
#
# ## Does the prediction come true?
#
# Now use what you have. Two numbers from *two* ranks predict the ring and the tree on *four*. Then
# let both run. A run lasts until its slowest rank is done, and again we take medians.
#
# Will the ring win where your formula says that it will? What could be different from a ping-pong?

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

# %% tags=["claim"]
assert all(ring > tree for ring, tree in raced[:4]), "the tree wins for small tensors"
assert sum(ring / tree for ring, tree in raced[-2:]) / 2 < sum(
    ring / tree for ring, tree in raced[:4]
) / 4, "the ring gains on it as they grow"

# %% [markdown]
# The tree wins for small tensors, and the ring gains on it as they grow: that is what the model says. The
# numbers often do *not* hold. On a machine with few cores both take longer than predicted, the ring more
# so, and the crossing is at a larger size, or nowhere.
#
# Ask the data why. Your `fit_alpha_beta` can look at the ring itself: each of its steps is a message
# of $S/n$ bytes, and takes $1/(2(n-1))$ of the time. In the same way it can look at the tree. If the
# model were perfect, all three lines below would be the same.

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
# step of the ring *four* do, and on one computer "travelling" means that its cores copy the bytes.
# Where four messages share the work of two cores, each takes longer: our second rule is broken. The
# ring's $\alpha$ is usually larger as well: a step starts a send, receives, waits, and runs some Python,
# and ranks that share a core wait for each other just to get their turn. How much there is to carry in all
# can be counted:

# %%
for n in (4, 8):
    for algorithm in (ring_sum, tree_sum):
        sent = traces[algorithm, n].traffic
        print(f"{n} ranks, {algorithm.__name__}: {sent.messages:3} messages, {sent.bytes} bytes in all")

# %% [markdown]
# The bytes are the same, $2(n-1)S$ for both! Where a ring is faster, it is because it carries them *at
# the same time*, over links that would otherwise be idle. On a network where each rank has its own link,
# the ring uses all of them. On one small computer all ranks share the same memory and the same few
# cores, so there is little to gain, but there are $n$ times as many messages to pay for.
#
# A model is useful even where it is wrong: it says what to expect *if* its rules hold, and the
# difference tells you which of them does not.
#
# ### What the model leaves out
#
# - **Sharing:** of cores, of memory, of links in the middle of a network that many pairs use.
# - **Adding up** costs something. Thakur, Rabenseifner and Gropp have a third number for it, $\gamma$.
# - **Levels:** within a machine and between machines there are different $\alpha$ and $\beta$.
# - **Chance:** one late rank makes all of them late.
#
# ## Hundreds of ranks on your computer
#
# A formula is one way to use the model. Another is to *execute* it. `simulate` runs a function as `run`
# does, but all ranks live in one process, and time is a number that the simulator counts up: a message of
# $S$ bytes takes $\alpha + \beta S$, a rank has one port to send and one to receive, and computing takes
# no time. Those are the rules from above. Your program itself is real: it runs on every rank and computes
# its sums.
#
# Here is the ring once more, the same `ring_sum` as at the beginning. (The `ring_all_reduce` that you
# wrote in [chapter 11](11_ring_all_reduce.ipynb) would run here without a change.)
#
# On 256 ranks, how long does the ring take if $\alpha$ is 10 µs and there are only 4 kB to sum?

# %%
right = all(simulate(all_same, 64, ring_sum))
print("ring_sum: like dist.all_reduce on 64 simulated ranks:", right)

few = torch.ones(1024)  # 4 bytes each: 4096 bytes
rings = {n: simulate(ring_sum, n, few, alpha=ALPHA, beta=BETA) for n in (2, 5, 8, 64, 256)}
for n in (8, 256):
    print(rings[n])

# %% [markdown]
# 510 latencies, one after the other, make more than 5 ms, for 4 kB.
#
# Simulated times do not vary. They are sums of whole numbers (of ticks of $10^{-21}$ s), and ranks take
# their turns in a fixed order, so you get the same digits again on every computer. Does your formula
# give them as well? So that it does not round either, we call it with fractions.

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
# They agree to the last digit where $n$ divides the tensor. On 5 ranks the formula sends 204.8 numbers
# at a time, which a program cannot do: some chunks have 205.
#
# ### Ring against tree, up to 1024 ranks
#
# You know where they cross on paper. Now look at two programs that do not know the formulas.
#
# **Predict:** double the ranks again and again, from 2. At how many does the tree begin to win with 4 kB?
# And with 262 kB?
#
# <details><summary>At 4, and at 4</summary>
#
# No: on 4 ranks they cross at 80 kB, so with 262 kB the ring still wins there.
# </details>
#
# <details><summary>At 4, and at 16</summary>
#
# Yes: 262 kB is above the crossing of 8 ranks, and below that of 16.
# </details>
#
# <details><summary>At 64, and never</summary>
#
# No: with enough ranks the ring's latencies outweigh any size, and for 4 kB four ranks are enough.
# </details>

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
# With 262 kB the ring wins on 8 ranks and the tree on 16, and the size is between your two
# crossings. In the picture, marks are simulated and lines are your formulas: every mark is on its
# line. The tree rises by one step for each doubling of $n$; the ring's latency grows with $n$ itself. On
# the left, with little data, they part early. On the right the ring begins below the tree, and the lines
# cross between 8 and 16 ranks.

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
# `dist.all_reduce` also runs on simulated ranks, and you choose the algorithm.
# ([docs/simulation.md](../docs/simulation.md#built-in-collectives-by-algorithm) lists them with their
# costs and sources.)
#
# Which one is best on 64 ranks for a few bytes? Which for a megabyte? The last row of the table is the
# bound.

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
# exchange whole tensors with a partner, then with one twice as far away, and so on: on a power of two
# it takes $\log_2 n$ rounds and meets the bound on rounds, but pays for a whole tensor in each of them.
# It is the one for a few bytes. For a megabyte it is `rabenseifner`, in less than a quarter of the ring's
# time, since the ring's 126 latencies still outweigh its bytes.
# ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe all three.)
#
# ### Neighbours
#
# We said that the model does not know which ranks are neighbours. A *cluster of two levels* does: take
# eight computers with eight ranks each. Inside a computer messages are fast; between computers, all
# ranks of one share **one** network card of 10 Gbit/s. The ranks of a ring can be laid out in two ways:
#
# - one computer after the other: only one rank of each sends to another computer;
# - in turns, as you deal cards: *every* rank sends to another computer.
#
# First look at the card alone. One megabyte takes 810 µs: 10 µs of latency, and 800 µs of the card.
#
# **Predict:** 4 ranks of one computer each send a megabyte to another computer, all at the same time. After
# how long has the last one arrived?
#
# <details><summary>810 µs: they travel together</summary>
#
# No: they share one card, and all of their bytes have to pass through it.
# </details>
#
# <details><summary>3210 µs: their bytes take turns</summary>
#
# Yes: 800 µs of the card for each, while the four latencies overlap.
# </details>
#
# <details><summary>3240 µs: four times a message</summary>
#
# No: the bytes need the card one after the other, but the latencies run at the same time.
# </details>

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
# So the last of $k$ megabytes has arrived after $\alpha + k \beta S$,
# whether the card is shared fairly, by all at once (`max-min`), or serves one after the other (`fifo`).
# The latencies overlap, so they count only once.
#
# Now the ring. In each step a rank sends a chunk of $S/n$ bytes. If the ranks are laid out one computer
# after the other, a card carries one chunk a step; if they are dealt like cards, it carries eight.
#
# **Predict:** how many times as long does the second ring take?
#
# <details><summary>Eight times, whatever the size</summary>
#
# No: the card is shared, but latencies are not. With little data those are most of the time.
# </details>
#
# <details><summary>Up to eight times, the more the larger the tensor</summary>
#
# Yes: only the bytes share the card, so the factor grows with their part of the time.
# </details>
#
# <details><summary>Just as long: a ring has the same messages</summary>
#
# No: they are the same, but where they travel is not. Eight of them now share a card.
# </details>

# %%
# 0, 8, 16, … share a computer
dealt = tuple(rank for first in range(8) for rank in range(first, 64, 8))

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
# The program, the ranks and the messages are the same; only the layout has changed. Note also what the
# ring by computer takes: $2(n-1)(\alpha + \beta S/n)$ with the card's numbers, although 56 of its 64 links
# are fast. All ranks go at the pace of the slowest link. This is why libraries look at how a machine is
# wired before they lay out a ring, as NCCL does ([its
# search](https://github.com/NVIDIA/nccl/blob/5067397c2676d5aed50042fc39e5c8ee96eb0027/src/graph/search.cc)).
#
# ### What a simulation leaves out
#
# A simulation is the model, executed, so it knows only what the model knows. You saw above how far your
# own machine is from it. For ranks that you do not have, keep in mind what is missing:
#
# - **Computing and copying.** Adding up is free, and so is memory. (`time.sleep` lets virtual time
#   pass: with it a program can say how long it computes.)
# - **Congestion.** The network between computers is never full here, and nothing is lost or slowed down
#   to avoid that. Shared cards are simulated, as you saw; switches and routes are not.
# - **Message rate** (the gap of LogGP). A card sends any number of messages per second, and matching them
#   costs nothing.
# - **Noise.** The operating system never interrupts a rank, so no rank is ever late by chance. On
#   thousands of real ranks there is nearly always one that is
#   ([Petrini, Kerbyson and Pakin 2003](https://doi.org/10.1145/1048935.1050204)).
#
# What it *does* show is what does not depend on all that: whether a program is right on hundreds of
# ranks, how its messages and rounds grow, and which rank waits for which. `check` uses it for exactly
# this: it has run your rings of chapters 05, 06 and 11 on 67 simulated ranks.
#
# ## Back to your 512 GPUs
#
# With the numbers from the beginning, 10 µs and 10 GB/s, you can now answer the three questions.
#
# **Predict:** go from 512 GPUs to 1024. What becomes of the ring with 4 kB, and with a gigabyte of
# gradients?
#
# <details><summary>Half as long, and half as long</summary>
#
# No: the chunks are half as long, but there are twice as many steps.
# </details>
#
# <details><summary>Twice as long, and twice as long</summary>
#
# No: the latencies double, but with a gigabyte it is the bytes that count, and those hardly change.
# </details>
#
# <details><summary>Twice as long, and hardly longer</summary>
#
# Yes: with 4 kB it is all latencies, and they double. The bytes stay just below 2 S.
# </details>

# %%
if ring_known and tree_known and crossing_known:
    for n in (512, 1024):
        for nbytes in (4096, 10**9):
            ring = 1e3 * ring_all_reduce_seconds(n, nbytes, ALPHA, BETA)
            tree = 1e3 * tree_all_reduce_seconds(n, nbytes, ALPHA, BETA)
            print(f"{n:5} GPUs, {nbytes:13,} bytes: ring {ring:8.2f} ms, tree {tree:8.2f} ms")
        print(f"{n:5} GPUs: they cross at {crossover_bytes(n, ALPHA, BETA) / 1e6:.1f} MB")

# %% [markdown]
# The gradients take a fifth of a second, and of the two the ring is the right choice for them. (Halving
# would save most of its 10 ms of latency; and where GPUs share network cards, lay the ring out as under
# *Neighbours*.) Twice as many GPUs make their all-reduce slower, not faster, but only by five per cent. For
# 4 kB the ring takes twice as long, the tree one level more. Put your own network's $\alpha$ and $\beta$
# into the formulas before you book.
#
# ## Summary
#
# - A message costs $\alpha + \beta S$. Below $S = \alpha/\beta$ count messages, above it count bytes.
# - An algorithm in rounds costs the sum of its rounds, and a round costs as much as its largest message.
# - Ring: $2(n-1)(\alpha + \beta S/n)$. Tree: $2\lceil \log_2 n \rceil(\alpha + \beta S)$.
# - With four ranks or more, this tree of whole messages wins for small tensors and the ring for large ones.
#   They cross at
#   $\frac{n-1-\lceil \log_2 n \rceil}{\lceil \log_2 n \rceil - (n-1)/n} \cdot \frac{\alpha}{\beta}$ bytes.
# - Point to point, with one message at a time into each rank, no all-reduce takes fewer than
#   $\lceil \log_2 n \rceil$ rounds or sends less than $2\frac{n-1}{n}S$ from its busiest rank. On a
#   power of two, halving and doubling takes twice the rounds of the first bound and meets the second.
# - A fit has to respect what the numbers mean: the best of the *allowed* lines is not the best line
#   with its negative numbers set to zero.
# - When a prediction fails, look for the rule that does not hold.
# - A simulation executes the model: the same function, on hundreds of ranks, in exact virtual time. It
#   shows how a program grows and where ranks share a link, and knows nothing that its model leaves out.
#
# **Where this is used:** in MPI libraries and in NCCL, whose
# [tuning model](https://github.com/NVIDIA/nccl/issues/754) picks an algorithm for each size and number
# of ranks; in planning, to say how long a step of training will wait for its gradients before you buy
# the machine.
#
# ### Check yourself
#
# <details><summary>A network has a latency of 5 µs and 200 Gbit/s. Which messages are small on it?</summary>
#
# 200 Gbit/s is 25 GB/s, so β is 0.04 ns per byte, and α/β = 125,000 bytes. Messages well below that
# cost their latency, whatever their size.
# </details>
#
# <details><summary>You have 1000 tensors of 10 kB each to all-reduce. How can the model help you?</summary>
#
# Put them into one tensor of 10 MB. The bytes cost the same, and you save the latency of 999
# all-reduces. Data-parallel training packs its gradients into a few such *buckets*.
# </details>
#
# <details><summary>The latency of your network is halved. Where do ring and tree cross now?</summary>
#
# At half the size: the crossing is proportional to α/β.
# </details>
#
# <details><summary>You measure all-reduces of one size only. Can you fit α and β?</summary>
#
# No. Every pair with α + βS = t fits equally well. You need at least two sizes, and better a wide range
# of them.
# </details>
#
# <details><summary>64 machines have eight H100s each, and each GPU has a network card of 400 Gbit/s. One ring goes through all 512, machine by machine. How long do 14 GB of gradients take, if only the bytes count? And with eight rings, each through a card of its own?</summary>
#
# One ring leaves a machine through one card, 50 GB/s, and goes at its pace: 2 · 511/512 · 14 GB take 0.56 s,
# while seven cards are idle. Eight rings share the tensor, and take an eighth of that, 0.07 s. Together they
# need 400 GB/s of each GPU's NVLink, which has 450. These are the channels of NCCL in chapter 11.
# </details>
#
# **Next:** [14 · Bandwidth](14_bandwidth.ipynb): how fast is a collective, and how fast could it be?
