# %% [markdown]
# # 09 · Barrier
#
# **You will learn** what a barrier promises and what it does not, what it costs to wait for the
# slowest, and how $n$ ranks can learn in $\lceil \log_2 n \rceil$ rounds that all of them have come.
#
# **You need** chapter [01](01_point_to_point.ipynb): `isend`, `recv`, rounds.
#
# **Time:** 60 minutes, and 1 exercise.

# %%
import time

import torch
import torch.distributed as dist

from grader import check, hint, predict, run, simulate, timeline

# %% [markdown]
# ## Why
#
# Rank 0 downloads and unpacks a data set; the other ranks are to read it, but not before it is all
# there. No tensor has to be exchanged. All they need to know is *that rank 0 has come this far*.
#
# ## What it promises
#
# A **barrier** moves no data at all. It promises one thing: **no rank leaves before the last has
# entered**.
#
# ![A time line of three ranks that sleep 0, 1 and 2 seconds. Rank 0 waits 2 seconds, rank 1 waits 1 second, and when rank 2 enters after 2 seconds all three leave together](../imgs/barrier.png)
#
# In the picture, rank $r$ sleeps $r$ seconds and then enters. With 3 ranks, all leave after
# about 2 seconds: when the *last* one has come. We run it ten times faster, so that you wait less.
#
# **Predict:** which of the three ranks leave after rank 2 has entered?

# %%
def sleep_then_meet(with_barrier):
    time.sleep(0.1 * dist.get_rank())
    entered = time.monotonic()
    if with_barrier:
        dist.barrier()
    left = time.monotonic()
    return entered, left


def show_who_leaves_late(times):
    last = max(entered for entered, _ in times)
    for rank, (_, left) in enumerate(times):
        print(f"rank {rank} leaves after the last has entered: {left >= last}")


show_who_leaves_late(run(sleep_then_meet, 3, True))

# %% [markdown]
# **Predict:** and without the barrier?

# %% tags=["nbval-ignore-output"]
show_who_leaves_late(run(sleep_then_meet, 3, False))

# %% [markdown]
# (All processes of one computer read the same clock. Between two computers you could not compare
# the times like that, and so no barrier is built on clocks.)
#
# A real clock shows a little more than 2 seconds, never the same. `simulate` runs the function on
# *simulated* ranks (chapter [11](11_ring_all_reduce.ipynb) says more of them). Their clock is that of a
# model: a sleep takes what it says, a message here takes nothing, and you need not wait.
#
# Whole seconds now, as in the picture; sleep and barrier together:

# %%
def sleep_whole_seconds():
    began = time.monotonic()
    time.sleep(dist.get_rank())
    dist.barrier()
    return time.monotonic() - began


for rank, seconds in enumerate(simulate(sleep_whole_seconds, 3, alpha=0.0, beta=0.0)):
    print(f"rank {rank} leaves after {seconds} s")

# %% [markdown]
# ### What it does not promise
#
# A barrier says: *everybody has come this far*. It does not say that the messages which were
# started before it have arrived. **Predict:** may rank 1 read `y` after the barrier?

# %%
def barrier_instead_of_wait():
    y = torch.zeros(1)
    if dist.get_rank() == 0:
        request = dist.isend(torch.ones(1), 1)
    else:
        request = dist.irecv(y, 0)
    dist.barrier()
    # here y may be 0 or 1
    request.wait()
    return y.item()


print("after wait():", run(barrier_instead_of_wait, 2)[1])

# %% [markdown]
# After `wait()` it is 1. Before that, even after a barrier, its value is not defined, so we do not
# look. Only `wait()` on the request itself tells that a message is complete.
#
# ## Often you do not need one
#
# An all-reduce cannot end on any rank before every rank has entered: the sum depends on what the
# last one brings. So it holds every rank back just as a barrier does. **Predict:** the first run
# again, with an all-reduce in place of the barrier.

# %%
def sleep_then_add():
    time.sleep(0.1 * dist.get_rank())
    entered = time.monotonic()
    dist.all_reduce(torch.ones(1))
    return entered, time.monotonic()


show_who_leaves_late(run(sleep_then_add, 3))

# %% [markdown]
# If all you want is that no rank goes on before the last has come, an all-reduce that you need anyway
# does it, and a barrier beside it is a second wait. A broadcast is different: its source may be gone
# before the others have come.
#
# That was gloo. **On a GPU** an all-reduce of NCCL holds back the *stream*, not your program, which
# goes on at once (chapter [07](07_all_reduce.ipynb)). There `dist.barrier()` does something that an
# all-reduce does not: it
# [blocks the program](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier)
# until the barrier is complete.
#
# So when do you need a barrier? When ranks depend on each other in a way that the process group does
# not see. Rank 0 downloads a file and the others read it: the barrier goes between the two. Or you
# measure time and want all ranks to start together (chapter 14): then the barrier goes *before* the
# first call that is timed.
#
# ## What it costs
#
# The messages of a barrier are tiny. What costs is the waiting: **at a barrier, every rank becomes
# as slow as the slowest**. A rank that is late is called a *straggler*.
#
# ![Three ranks and three steps; rank r is slow in step r + 1. With a barrier after every step all wait in each step and are done after 6. Without barriers each rank is slow once, and all are done after 4](../imgs/straggler.png)
#
# In the picture every rank is slow *once*. With a barrier after each step, every rank pays for
# every other's bad moment. Without barriers, bad moments happen at the same time as other ranks' good
# ones.
#
# Here is the same as a real run. `timeline` shows where its time went: a thin grey bar is a rank's own
# code, a box is a rank that waits. What changes if you take the
# barrier out? Try it.

# %% tags=["nbval-ignore-output"]
def slow_once():
    for step in range(3):
        time.sleep(0.2 if step == dist.get_rank() else 0.1)
        dist.barrier()


timeline(run(slow_once, 3))

# %% [markdown]
# In every step two ranks wait for the third. (The times are those of this one run; yours differ a
# little.)
#
# Let us simulate it. Eight ranks do 1000 steps of 1 second. Each step has a small chance, 5 %, to
# take 3 seconds: a slow disk, another program, the garbage collector. No process is started here;
# we only add up numbers.
#
# **Predict:** the average rank needs about 1100 seconds. How long does it take with a barrier after
# every step? After every 100 steps?

# %%
predict("")


# %%
def seconds_until_all_are_done(seconds, barrier_every):
    """Add up steps; at a barrier everybody's clock jumps to that of the last."""
    clock = torch.zeros(seconds.shape[1])
    for number, step in enumerate(seconds, 1):
        clock += step
        if number % barrier_every == 0:
            clock[:] = clock.max()
    return int(clock.max())


torch.manual_seed(0)
steps, n = 1000, 8
sometimes_slow = torch.where(torch.rand(steps, n) < 0.05, 3.0, 1.0)

print("seconds of work, average over ranks:", int(sometimes_slow.sum(0).mean()))
for every in (1, 10, 100, 1000):
    done = seconds_until_all_are_done(sometimes_slow, every)
    print(f"a barrier every {every:4} steps: done after {done} s")

# %% [markdown]
# With a barrier in every step it takes half as long again. The probability that *none* of
# the eight is slow is only $0.95^8 \approx 66\,\%$, so one step in three takes 3 seconds. With more
# ranks it gets worse:

# %%
for ranks in (1, 8, 64, 512):
    everybody_fast = 0.95**ranks
    print(f"{ranks:3} ranks: a step takes {1 + 2 * (1 - everybody_fast):.2f} s on average")

# %% [markdown]
# With a barrier every 100 steps, most of the bad luck averages out: in 100 steps every rank has
# about five slow ones.
#
# It averages out only if it is *luck*. **Predict:** now rank 3 is always slow, 1.5 seconds a step,
# and the others never. What do fewer barriers bring?

# %%
always_slow = torch.ones(steps, n)
always_slow[:, 3] = 1.5

for every in (1, 10, 100, 1000):
    done = seconds_until_all_are_done(always_slow, every)
    print(f"a barrier every {every:4} steps: done after {done} s")

# %% [markdown]
# Nothing. A rank that is always slow has to be repaired, or given less to do.
#
# It does not take a `barrier` to make ranks wait: every collective in which each rank needs something
# from every other does. Data-parallel training has one in each step, the all-reduce of gradients.
# That is why one slow machine can slow down a thousand.
#
# ## Building one: a rank in the middle
#
# How does a rank come to *know* that all the others have entered? Not by a clock, and not by
# sleeping "long enough". It has to be told, and the only way of telling is a message.
#
# The obvious way: every rank tells rank 0, and when rank 0 has heard from all, it answers them.

# %%
def central():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)  # its value means nothing; that it comes means everything
    if rank == 0:
        for other in range(1, n):
            dist.recv(token, other)
        for other in range(1, n):
            dist.send(token, other)
    else:
        dist.send(token, 0)
        dist.recv(token, 0)


print(run(central, 4).trace)

# %% [markdown]
# **Predict:** what would go wrong without the second half, in which rank 0 answers? The record of
# the messages knows. `heard_from` follows them: a rank knows what it has been told, and what those
# who told it had been told before. (Leslie Lamport called this
# [happened before](https://doi.org/10.1145/359545.359563).)

# %%
from grader.trace.trace import heard_from


def without_an_answer():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    if rank == 0:
        for other in range(1, n):
            dist.recv(token, other)
    else:
        dist.send(token, 0)


for function in (central, without_an_answer):
    print(function.__name__)
    for rank, heard in enumerate(heard_from(run(function, 4).trace)):
        print(f"   when rank {rank} leaves, it has heard from {sorted(heard)}")

# %% [markdown]
# A function is a barrier exactly if every rank has heard from every rank when it leaves, however
# fast or slow any of them is. That is how `check` will judge yours: no stopwatch is needed, and luck
# does not help.
#
# The central barrier is right, with only $2(n-1)$ messages. But rank 0 handles them one by one,
# which takes $2(n-1)$ rounds, while the others stand idle.
#
# ## A tree
#
# From chapters 02 and 04 you know what helps a rank in the middle: a tree. Tokens are *combined* on
# the way up, so a rank reports once for itself and all ranks below it; then the answer comes down the
# same tree. **Predict:** how many messages, and how many rounds, on 8 ranks?

# %%
predict("")


# %%
def combining_tree():
    rank, n = dist.get_rank(), dist.get_world_size()
    token, step = torch.zeros(1), 1
    while step < n and rank % (2 * step) == 0:  # up: hear from those below me
        if rank + step < n:
            dist.recv(token, rank + step)
        step *= 2
    if rank != 0:  # report, and wait for the answer
        dist.send(token, rank - step)
        dist.recv(token, rank - step)
    while step > 1:  # down: pass the answer on
        step //= 2
        if rank + step < n:
            dist.send(token, rank + step)


for n in (4, 5, 8, 16):
    trace = run(combining_tree, n).trace
    complete = all(len(heard) == n for heard in heard_from(trace))
    counts = f"{trace.traffic.messages:2} messages, {trace.traffic.rounds} rounds"
    print(f"{n:2} ranks: a barrier: {complete}, {counts}")

# %% [markdown]
# As few messages as the central one, $2(n-1)$, in at most $2 \lceil \log_2 n \rceil$ rounds. Half of
# the rounds go up and half come down, and near the root few ranks have anything to do.
#
# ## Dissemination: every rank tells another
#
# Better still: in every round, **every rank** sends a token and receives one. In the round with step 1 to
# the right neighbour, then with step 2, then 4, and so on, until the step reaches $n$.
#
# ![Five ranks and three rounds with steps 1, 2 and 4. At the start each rank knows of itself; after round 1 of two ranks, after round 2 of four, after round 3 of all five](../imgs/dissemination.png)
#
# The boxes show of whom a rank has heard. **Predict** from the picture: how many rounds would 8
# ranks need? And 9?

# %%
def rounds_until_all_know(n, show=False):
    heard = [{rank} for rank in range(n)]
    rounds, step = 0, 1
    while step < n:
        heard = [heard[r] | heard[(r - step) % n] for r in range(n)]
        rounds, step = rounds + 1, 2 * step
        if show:
            print(f"round {rounds}: rank 0 has heard from {sorted(heard[0])}")
    assert all(len(known) == n for known in heard)
    return rounds


rounds_until_all_know(5, show=True)
print()
for n in (1, 2, 3, 4, 5, 8, 9, 1000):
    print(f"ranks: {n:4}   rounds: {rounds_until_all_know(n):2}")

# %% [markdown]
# After $k$ rounds a rank has heard from itself and the $2^k - 1$ ranks to its left: what is known
# **doubles**. It has to reach $n$, so $\lceil \log_2 n \rceil$ rounds, for any $n$ and not only for
# powers of two. With point-to-point messages, one received in a round, no barrier can be faster: a
# rank can at most double what it knows.
#
# This is the *dissemination barrier* of Hensgen, Finkel and Manber
# ([Two algorithms for barrier synchronization, 1988](https://doi.org/10.1007/BF01379320)).
# Mellor-Crummey and Scott compared it with many others on real machines
# ([1991](https://doi.org/10.1145/103727.103729)). And it is what gloo's
# [own barrier](https://github.com/pytorch/gloo/blob/main/gloo/barrier.cc) does: the `dist.barrier()`
# that you called above.
#
# The price is more messages: $n \lceil \log_2 n \rceil$ instead of $2(n-1)$.
#
# ## Exercise: barrier
#
# Write the dissemination barrier. It takes exactly $\lceil \log_2 n \rceil$ rounds and
# $n \lceil \log_2 n \rceil$ messages, and no message when $n$ is 1. It must also work when it is
# called twice in a row, because a fast rank may be in the second barrier while a slow one is still
# in the first.
#
# The token may be any tensor that is the same size and dtype everywhere; `torch.zeros(1)` will do.

# %%
def barrier() -> None:
    """No rank leaves before the last has entered."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    token, heard = torch.zeros(1), torch.zeros(1)
    step = 1
    while step < n:
        request = dist.isend(token, (rank + step) % n)
        dist.recv(heard, (rank - step) % n)
        request.wait()
        step *= 2
    ### END SOLUTION


check(barrier)

# %% [markdown]
# Why must a round wait for the one before? **Predict:** here all sends start at once. The messages
# are the same. Of whom has rank 0 heard?

# %%
predict("")

# %%
def all_at_once():
    rank, n = dist.get_rank(), dist.get_world_size()
    requests, step = [], 1
    while step < n:
        requests.append(dist.isend(torch.zeros(1), (rank + step) % n))
        requests.append(dist.irecv(torch.zeros(1), (rank - step) % n))
        step *= 2
    for request in requests:
        request.wait()


trace = run(all_at_once, 8).trace
print("messages:", trace.traffic.messages)
print("rank 0 has heard from", sorted(heard_from(trace)[0]))

# %% [markdown]
# A message can tell only what its sender knew **when it sent it**. Here every sender knew of itself
# alone. The right number of messages is not enough; the order carries the knowledge.
#
# Now yours, between ranks that sleep:

# %%
def sleep_then_meet_mine():
    time.sleep(0.1 * dist.get_rank())
    entered = time.monotonic()
    barrier()
    return entered, time.monotonic()


if check(barrier):
    show_who_leaves_late(run(sleep_then_meet_mine, 3))

    print("\nmessages and rounds")
    for n in (2, 3, 4, 5, 8, 16):
        one, other = run(central, n).trace.traffic, run(barrier, n).trace.traffic
        print(
            f"{n:2} ranks   central: {one.messages:2} in {one.rounds:2} rounds"
            f"   dissemination: {other.messages:2} in {other.rounds} rounds"
        )

# %% [markdown]
# ## Summary
#
# - A **barrier** promises that no rank leaves before the last has entered, and nothing else. It
#   does not complete your requests.
# - It makes every rank as slow as the slowest. Random slowness averages out if you meet less often; a
#   rank that is always slow does not.
# - An all-reduce holds every rank back, too; on NCCL it holds the stream back and not your program.
# - Central: $2(n-1)$ messages and $2(n-1)$ rounds. Tree: as many messages, at most
#   $2 \lceil \log_2 n \rceil$ rounds. Dissemination: $n \lceil \log_2 n \rceil$
#   messages and $\lceil \log_2 n \rceil$ rounds, the fewest that point-to-point messages allow.
# - What a message tells is what its sender knew when it sent it.
#
# Back to the data set: rank 0 unpacks and then enters; the others enter at once and read when they
# leave. Their files are complete, however long it took.
#
# **Where this is used:** one rank prepares a data set or a checkpoint while the others wait; lining
# up ranks before time is measured (chapter 14); test programs. In a training loop, hardly ever.
#
# ### Check yourself
#
# <details><summary>Rank r sleeps r seconds and then enters a barrier. After how many seconds do 8 ranks leave?</summary>
#
# After about 7 seconds, when rank 7 has come.
# </details>
#
# <details><summary>Why does <code>rank ^ step</code> (flip one bit) find partners on 8 ranks, but not on 6?</summary>
#
# With step 4, rank 2 would talk to rank 6 and rank 3 to rank 7, which do not exist on 6 ranks.
# (rank + step) mod n exists for every n.
# </details>
#
# <details><summary>On 1024 ranks the central barrier sends 2046 messages and dissemination 10 240. Why is dissemination faster nevertheless?</summary>
#
# Its messages travel at the same time, in 10 rounds. The central ones queue at rank 0, for 2046
# rounds.
# </details>
#
# **Next:** [10 · torch.scatter_reduce](10_scatter_reduce.ipynb): a reduction inside one tensor, on one
# rank.
