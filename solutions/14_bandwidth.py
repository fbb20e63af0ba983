# %% [markdown]
# # 14 · Bandwidth
#
# Training is slower than you hoped, and a colleague says: "It can't be the network. Our all-reduce runs
# at 40 GB/s." Is that good? On how many ranks, with a tensor of what size, and timed from when to when?
# Without the answers the number says nothing about the links and cannot be compared with another.
#
# **You will learn** to say how fast a collective is, in a number that can be compared across operations
# and numbers of ranks, and to measure that number without fooling yourself.
#
# **You need** chapters [06](06_reduce_scatter.ipynb), [09](09_barrier.ipynb),
# [11](11_ring_all_reduce.ipynb) and [13](13_cost_models.ipynb).
#
# **Time:** 75 minutes, and 3 exercises.

# %%
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Bytes, seconds, and what people call them
#
# The **algorithm bandwidth** (*algbw*) of an operation is the size of its tensor divided by the time that it
# takes, however many bytes travel inside. Mistakes creep in with the units:
#
# - Networks are sold in **bits** per second: a link of 100 Gbit/s moves 12.5 GB/s.
# - A gigabyte is $10^9$ bytes here. Memory is often counted in units of $2^{30}$ bytes, 7 % more.
# - Elements are not bytes: a `bfloat16` takes 2 bytes, a `float32` 4.
#
# **Predict:** how long does a link of 100 Gbit/s need at least for a billion `float32`?
#
# <details><summary>0.32 s</summary>
#
# Yes: 4 GB at 12.5 GB/s.
# </details>
#
# <details><summary>0.08 s</summary>
#
# No: that is a gigabyte. Each of the billion numbers takes 4 bytes.
# </details>
#
# <details><summary>0.04 s</summary>
#
# No: that is 4 GB at 100 GB/s. The link is sold in bits.
# </details>

# %%
elements = 1_000_000_000
link = 100e9 / 8  # bytes a second
print("seconds:", elements * torch.float32.itemsize / link)
print(f"2³⁰ beside 10⁹: {2**30 / 10**9 - 1:.1%} more, so 80 · 2³⁰ bytes are {80 * 2**30 / 10**9:.1f} GB")

# %% [markdown]
# ## Exercise: algorithm_bandwidth
# It takes `seconds` to move `nbytes`. Return the bandwidth in bytes per second.

# %%
def algorithm_bandwidth(nbytes: int, seconds: float) -> float:
    """Bytes a second."""
    ### BEGIN SOLUTION
    return nbytes / seconds
    ### END SOLUTION


check(algorithm_bandwidth)

# %% [markdown]
# ## What one link has to carry
#
# Your colleague measures an all-reduce of 1 GB on two machines: 0.15 s on one with 4 GPUs, 0.175 s on
# one with 8. That makes 6.7 GB/s and 5.7 GB/s. Are the links of the second machine slower?
#
# To answer, ask how many bytes the **busiest link** must carry. Let us count. Here is the ring of
# chapter 11 in its two phases: a reduce-scatter, then an all-gather.

# %%
def ring_phase(chunks, first, combine):
    """n − 1 steps: pass a chunk to the right, and combine or replace what comes from the left."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n - 1):
        out, into = (first - step) % n, (first - step - 1) % n
        heard = torch.empty_like(chunks[into])
        request = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(heard, (rank - 1) % n)
        request.wait()
        chunks[into].copy_(chunks[into] + heard if combine else heard)


def reduce_scatter_phase(x):
    ring_phase(x.chunk(dist.get_world_size()), dist.get_rank(), combine=True)


def all_gather_phase(x):
    ring_phase(x.chunk(dist.get_world_size()), dist.get_rank() + 1, combine=False)


def both_phases(x):
    reduce_scatter_phase(x)
    all_gather_phase(x)
    return x


print(run(both_phases, 4, torch.ones(8))[0])

# %% [markdown]
# How much of a tensor of $S$ bytes does each rank send in the first phase, and how much in both together?

# %%
x = torch.ones(840)  # 2, 3, 4, 5 and 8 all divide 840
for n in (2, 3, 4, 5, 8):
    parts = [run(f, n, x).trace.traffic.max_sent / x.nbytes for f in (reduce_scatter_phase, both_phases)]
    print(f"{n} ranks   reduce-scatter: {parts[0]:.3f} S   all-reduce: {parts[1]:.3f} S")

# %% [markdown]
# One phase moves $n-1$ of the $n$ chunks over each link: $\frac{n-1}{n} S$. An all-reduce has two
# phases and moves $\frac{2(n-1)}{n} S$.
#
# So the 2 counts **phases**, and not "sent once and received once", which chapter
# [11](11_ring_all_reduce.ipynb) refuted: a reduce-scatter sends and receives as well, and has no 2.
# Sending and receiving use the two directions of a link at the same time, and are not added up.
#
# The **bus bandwidth** (*busbw*) is what the busiest link had to carry in the time $t$, divided by $t$:
#
# $$\text{busbw} = \frac{S}{t} \cdot \text{factor}$$
#
# **Predict:** which of your colleague's machines has the slower links?
#
# <details><summary>The one with 8 GPUs</summary>
#
# No: its time is longer, but there a link has to carry more: 1.75 S in place of 1.5 S.
# </details>
#
# <details><summary>Neither of them</summary>
#
# Yes: 1.5 GB in 0.15 s, and 1.75 GB in 0.175 s.
# </details>
#
# <details><summary>The one with 4 GPUs</summary>
#
# No: there a link carries less in all, but in less time.
# </details>

# %%
for n, seconds in ((4, 0.15), (8, 0.175)):
    algbw = 1e9 / seconds
    busbw = algbw * 2 * (n - 1) / n
    print(f"{n} GPUs   algbw: {algbw / 1e9:.1f} GB/s   busbw: {busbw / 1e9:.1f} GB/s")

# %% [markdown]
# On both machines a link carries 10 GB/s. That is what bus bandwidth is for: you can compare
# it with the data sheet of the links, however many ranks there are. It assumes that data travel from
# rank to rank. Where switches do the adding
# ([SHARP](https://doi.org/10.1109/COMHPC.2016.006), NVLS), a link carries less than the factor says. And
# where links are of two kinds, a tree may spare the slow ones: NCCL's can show a busbw
# [above what the network between two machines carries](https://github.com/NVIDIA/nccl-tests/issues/22).
#
# For comparison: in a machine with eight H100s, NVLink carries 450 GB/s in and out of each of them. NCCL's
# ring reaches a busbw of about 370, and with the adding done in the switches an all-reduce shows about
# 480, more than the wire carries ([a maintainer of NCCL](https://github.com/NVIDIA/nccl-tests/issues/212)).
#
# Every operation has its factor, and you can find it as you did here: which part of the tensor must
# cross the busiest link at least, if messages go from rank to rank? Does a part of it stay where it is?
# And does everything pass through one rank?
#
# ### Which size is S?
#
# $S$ is always the size of the **whole tensor**: all $n$ parts together. For a reduce-scatter that
# is what a rank puts *in*, for an all-gather what it gets *out*.
#
# Suppose that a table says 70 GB/s for a reduce-scatter and 280 GB/s for an all-reduce on the same four
# GPUs, as if half of the work ran at a quarter of the speed. What has happened? The program took the
# size of the reduce-scatter's *output*, one part of $n$.
#
# Take links of 250 GB/s between 4 ranks. With either size, the bus bandwidth would be:

# %%
n, link, whole = 4, 250e9, 1e9
seconds = whole * (n - 1) / n / link  # a perfect reduce-scatter
for name, nbytes in (("input, the whole tensor", whole), ("output, one part", whole / n)):
    print(f"{name}: {nbytes / seconds * (n - 1) / n / 1e9:.1f} GB/s")

# %% [markdown]
# With the wrong size it is $n$ times too small.
#
# ## Exercise: bus_bandwidth
#
# Return the bus bandwidth of the operation `op`, one of `all_reduce`, `all_gather`, `reduce_scatter`,
# `all_to_all`, `broadcast`, `reduce`, `scatter`, `gather` and `send_recv`. `nbytes` is the size of the
# whole tensor.

# %%
def bus_bandwidth(op: str, nbytes: int, seconds: float, world_size: int) -> float:
    """Bytes a second that the busiest link carries at least."""
    ### BEGIN SOLUTION
    if op in ("broadcast", "reduce", "send_recv"):
        factor = 1.0
    else:
        phases = 2 if op == "all_reduce" else 1
        factor = phases * (world_size - 1) / world_size
    return algorithm_bandwidth(nbytes, seconds) * factor
    ### END SOLUTION


check(bus_bandwidth)

# %% [markdown]
# For all-reduce, reduce-scatter, all-gather, all-to-all, broadcast and reduce these are the factors of
# NVIDIA's [nccl-tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md); for the
# others they follow from the same reasoning:
#
# | operation | factor | why |
# |---|---|---|
# | all-reduce | $2(n-1)/n$ | two phases |
# | reduce-scatter, all-gather, all-to-all, scatter, gather | $(n-1)/n$ | one phase; one part stays |
# | broadcast, reduce, a plain message | 1 | the whole tensor crosses the root's or sender's link |
#
# The next cell prints all nine, busbw divided by algbw, as the grader and its command `bench` compute
# them. Which of them grow from 2 ranks to 1024, and by what ratio?

# %%
from grader.course import costs

print("ranks          ", *(f"{n:6}" for n in (2, 3, 4, 8, 1024)))
for op in costs.FACTORS:
    factors = (
        costs.bus_bandwidth(op, 10**9, 1.0, n) / costs.algorithm_bandwidth(10**9, 1.0)
        for n in (2, 3, 4, 8, 1024)
    )
    print(f"{op:15}", *(f"{factor:6.3f}" for factor in factors))

# %% [markdown]
# ## Taking the time honestly
#
# Now for $t$. There are four traps. Let us fall into the first two.
#
# **1. The first calls are special.** Memory is allocated, caches are cold, and with NCCL the first collective
# also makes the connections. How much slower is the first call than the later ones?

# %% tags=["nbval-ignore-output"]
def many_calls():
    x, times = torch.ones(1000), []
    for _ in range(45):
        started = time.perf_counter()
        dist.all_reduce(x)
        times.append(time.perf_counter() - started)
    return [round(seconds * 1e6) for seconds in times]


for r, microseconds in enumerate(run(many_calls, 2)):
    print(f"rank {r}: the first five {microseconds[:5]} µs")
    print(f"        the median of the last forty {statistics.median(microseconds[5:]):.0f} µs")

# %% [markdown]
# Here the difference may be small, and get lost among the later calls, which vary as well: gloo has made
# its connections before your function begins. Elsewhere it is large. So make some calls before you start
# the clock, and discard them: **warm up**.
#
# **2. Ranks do not arrive at the same time.** Three ranks start their clocks just before an all-reduce that
# takes a few milliseconds, and stop them just after it. Rank 2 arrives 0.5 s late.
#
# **Predict:** what do they measure?
#
# <details><summary>Rank 2 half a second, the others milliseconds</summary>
#
# No: rank 2 starts its clock only when it arrives, and by then all are there.
# </details>
#
# <details><summary>All three of them milliseconds</summary>
#
# No: the clocks of ranks 0 and 1 run while they wait for rank 2.
# </details>
#
# <details><summary>Rank 2 milliseconds, the others half a second</summary>
#
# Yes: the others wait inside the operation, and time their own waiting.
# </details>

# %% tags=["nbval-ignore-output"]
def one_is_late(line_up):
    if dist.get_rank() == 2:
        time.sleep(0.5)
    if line_up:
        dist.barrier()
    started = time.perf_counter()
    dist.all_reduce(torch.ones(1))
    return time.perf_counter() - started


measured = {line_up: list(run(one_is_late, 3, line_up)) for line_up in (False, True)}
for line_up, times in measured.items():
    print(f"lined up: {line_up}   seconds by rank:", [round(seconds, 3) for seconds in times])

# %% tags=["claim"]
assert measured[False][2] < 0.25 < min(measured[False][:2]), "two ranks time the third one's delay"
assert max(measured[True]) < 0.25, "lined up, no rank does"

# %% [markdown]
# Without lining up, two ranks measured how late the third one was. So call a **barrier** first, and start
# the clock after it: the barrier is not what you want to measure. (Ranks do not leave a barrier at the same
# instant, so a little of the waiting remains. Many calls in a row make it small.)
#
# **3. Ranks do not finish at the same time.** In a broadcast the root may be done before the last rank
# has begun to receive. The operation takes as long as the **slowest** rank needs, so the largest time
# counts, not the average and not rank 0's.
#
# **4. A single call is short, and its time is partly luck.** Time many calls, and divide.
#
# ![Three ranks. Each makes two calls to warm up, waits in a barrier for the last rank, starts its
# clock and makes three calls. Rank 1 is done last; its time divided by the number of calls is the
# result.](../imgs/timing.png)
#
# And use the right clock. Python has `perf_counter`, `monotonic` and `process_time`, among others.
#
# **Predict:** which of these three notices that a rank waits?
#
# <details><summary>All three of them</summary>
#
# No: one of them counts only the time in which the processor works for this process.
# </details>
#
# <details><summary>All but <code>process_time</code></summary>
#
# Yes: it counts the time in which the processor works for this process, and a rank that waits here does
# not use it.
# </details>
#
# <details><summary>Only <code>process_time</code></summary>
#
# No: that is the one that hardly moves while the rank waits.
# </details>

# %% tags=["nbval-ignore-output"]
def clocks():
    names = ("perf_counter", "monotonic", "process_time")
    before = [getattr(time, name)() for name in names]
    if dist.get_rank() == 0:
        time.sleep(0.5)
    dist.barrier()
    after = [getattr(time, name)() for name in names]
    return {name: round(b - a, 3) for name, a, b in zip(names, before, after)}


waited = run(clocks, 2)[1]
print(waited)

# %% tags=["claim"]
assert waited["process_time"] < 0.25 < min(waited["perf_counter"], waited["monotonic"]), (
    "process_time does not notice that a rank waits"
)

# %% [markdown]
# `process_time` does not notice. (On a GPU a call may return before the GPU has finished, or even begun. Call
# `torch.cuda.synchronize()` before each reading of the clock; chapter 18 comes back to it.)
#
# ## Exercise: time_collective
#
# `fn()` is some collective operation, and every rank calls it. Return the seconds that one call takes:
# the mean over `iterations` calls on the slowest rank, the **same number on every rank**. Before that,
# call `fn` `warmup` times, and line the ranks up. `dist.barrier` and `dist.all_reduce` are allowed.
#
# `check` hands in an `fn` whose duration it knows exactly, on a clock of its own: `time.perf_counter`
# and the other clocks show that one to your function. So the verdict does not depend on how busy your
# computer is.

# %%
def time_collective(fn, warmup: int, iterations: int) -> float:
    """Seconds per call: the slowest rank's mean, the same number everywhere."""
    ### BEGIN SOLUTION
    for _ in range(warmup):
        fn()
    dist.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        fn()
    mean = (time.perf_counter() - started) / iterations
    slowest = torch.tensor(mean, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()
    ### END SOLUTION


check(time_collective)

# %% [markdown]
# Now use all three together: the bandwidth of `dist.all_reduce`, where each size is 16 times the one
# before, from 1 KiB to 4 MiB.
#
# **Predict:** how does the bandwidth change from the first to the last?
#
# <details><summary>Hardly: the link is the same</summary>
#
# No: the time of a small message is latency, whatever the link. Few bytes divided by it make a small
# bandwidth.
# </details>
#
# <details><summary>It falls: large tensors take longer</summary>
#
# No: they do take longer, but far less than in proportion to their bytes.
# </details>
#
# <details><summary>It rises, more than a hundredfold</summary>
#
# Yes: for 4096 times the bytes it takes only a few times as long. (How many times depends on the machine.)
# </details>

# %% tags=["nbval-ignore-output"]
def measure_all_reduce(nbytes):
    x = torch.zeros(nbytes // 4)
    # the best of five: another program can only make it slower
    return min(time_collective(lambda: dist.all_reduce(x), 5, 20) for _ in range(5))


if check(time_collective) and check(bus_bandwidth):
    n, speeds = 2, []
    for nbytes in (1 << 10, 1 << 14, 1 << 18, 1 << 22):
        seconds = run(measure_all_reduce, n, nbytes)[0]
        speeds.append(bus_bandwidth("all_reduce", nbytes, seconds, n))
        print(f"{nbytes:8} bytes: {seconds * 1e6:8.0f} µs   busbw {speeds[-1] / 1e9:.4f} GB/s")

# %% tags=["claim"]
assert speeds[-1] > 100 * speeds[0], "the bandwidth rises more than a hundredfold"

# %% [markdown]
# The first row looks as if the link were more than a hundred times slower there. It is not. Compare the
# *times*: they grow far less than the bytes do, and at first hardly or not at all. The first rows measure
# the latency $\alpha$, the price of the messages themselves, and 1 KiB divided by it is a tiny number. Only
# where $\beta S$ is well above $\alpha$ does bus bandwidth say something about a link.
#
# ## A table in the usual layout
#
# Small messages are all latency, large ones all bandwidth, so one number is never enough: sweep the
# size. The command `bench` does what you have written, in the layout of nccl-tests, and checks the data
# afterwards (`#wrong`): a fast collective that adds wrongly is worth nothing.
#
# Its ranks are plain processes on gloo and are not recorded, so they are faster than those of `run`.
# For each size it makes 5 calls to warm up and discards them, and then times 20, as the second line
# says. (nccl-tests prints time, algbw and busbw twice: *out of place*, and *in place*, as here.)

# %% tags=["nbval-ignore-output"]
def bench(*words):
    command = [sys.executable, "-m", "grader", "bench", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


print(bench("all_reduce", "--ranks", "2", "--max-bytes", "4M"), end="")

# %% [markdown]
# In a terminal:
#
# ```
# python -m grader bench all_reduce --ranks 4
# python -m grader bench ring_all_reduce --file notebooks/11_ring_all_reduce.ipynb \
#     --plot ring.png
# torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \
#     -m grader bench all_reduce
# ```
#
# The last one runs over a real network: start it on both machines. If they have GPUs, add
# `--backend nccl`.
#
# ### Reading the table
#
# Read the column of times first. In the rows at the top the size hardly matters: you are looking at
# $\alpha$, and at luck. Each row is the mean of 20 calls, so a single disturbed call can make a small
# message look slower than a larger one. Before you explain such a row, run the table again. Towards the
# bottom the time grows with the size, and the bus bandwidth approaches what the links can carry, until
# something else gets in the way; here the ranks share memory and a few cores. The average in the last
# line mixes both ends, and says little about either.
#
# If a time is $t = \alpha + \beta S$, two numbers describe the whole column: the **latency** $\alpha$, and
# the bandwidth $1/\beta$ that large messages approach. Chapter [13](13_cost_models.ipynb) found both with
# the straight line that is nearest to the measured times *in seconds*. There the large messages decide.
# Here the sizes differ by a factor of 4096 and the small ones should count as much, so we take the line
# with the smallest errors *in proportion* to the times.

# %% tags=["nbval-ignore-output"]
words = ("broadcast", "--ranks", "2", "--min-bytes", "4K", "--max-bytes", "16M", "--json")
rows = json.loads(bench(*words))["rows"]
sizes = torch.tensor([row["nbytes"] for row in rows], dtype=torch.float64)
times = torch.tensor([row["seconds"] for row in rows], dtype=torch.float64)

# least squares of the relative errors
columns = torch.stack([torch.ones_like(sizes), sizes], 1) / times[:, None]
alpha, beta = torch.linalg.lstsq(columns, torch.ones(len(rows), 1, dtype=torch.float64)).solution[:, 0]
print(f"alpha: {alpha * 1e6:.0f} µs   1/beta: {1 / beta / 1e9:.2f} GB/s")
print(f"half of the time is latency at {alpha / beta / 1e3:.0f} kB")
misfit = (columns @ torch.stack([alpha, beta]) - 1).abs().max()
verdict = "the two numbers describe the rows" if misfit < 0.3 else "do not quote the two numbers"
print(f"the line misses the worst row by {misfit:.0%}: {verdict}")

# %% [markdown]
# Below the size $\alpha/\beta$ you pay mainly for *messages*, above it for *bytes*, as in chapter 13; that
# is why gradients are packed into buckets before they are reduced. But two numbers come out of any fit. Quote
# them only if the line is near every row, here within 30 %. If it is not, the computer was busy with something
# else, or the model does not hold: run it again.
#
# ## Summary
#
# So is 40 GB/s good? If it is the bus bandwidth of a large tensor, timed on the slowest rank after
# warming up, compare it with the data sheet of the links. If it is the algorithm bandwidth on 8 ranks,
# the links carry 70 GB/s. And if training sends many small tensors, your colleague's number says
# nothing about them: what counts there is $\alpha$.
#
# - **algbw** is $S/t$. **busbw** is what the busiest link carries per second: algbw times a factor.
# - With messages from rank to rank, the factor of an all-reduce is $2(n-1)/n$, two phases of $(n-1)/n$
#   each. That of a reduce-scatter or an all-gather is $(n-1)/n$, that of a broadcast 1.
# - $S$ is the whole tensor, all $n$ parts of it. With one part instead, the result is $n$ times too
#   small.
# - Count in bytes, not bits or elements, and in $10^9$, not $2^{30}$.
# - Warm up, line up, time many calls, take the slowest rank, check the data, sweep the size.
#
# **Where this is used:** in acceptance tests of new clusters, where busbw is compared with the data sheet
# of the links; in finding the one cable that is broken; in deciding how large a bucket of gradients should
# be.
#
# ### Check yourself
#
# <details><summary>An all-gather on 8 ranks takes 1 ms, and each rank brings 1 MB. What is its bus bandwidth?</summary>
#
# S is 8 MB, algbw 8 GB/s, busbw 8 · 7/8 = 7 GB/s: each rank gets 7 MB in 1 ms.
# </details>
#
# <details><summary>On very many ranks, what becomes of the factor of an all-reduce? What of the algorithm bandwidth, if the links stay the same?</summary>
#
# The factor approaches 2, and algbw half of what a link carries.
# </details>
#
# <details><summary>A colleague times a broadcast on rank 0 only and finds that it is faster than the link. How?</summary>
#
# Rank 0 is the root. It is done when it has handed its data over, and the others may not have received
# them yet. The slowest rank's time counts.
# </details>
#
# **Next:** [15 · Data parallelism](15_data_parallel.ipynb), which is what all these all-reduces are for.
