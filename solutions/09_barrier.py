# %% [markdown]
# # 09 · Barrier
#
# Rank 0 downloads and unpacks a data set. The other ranks are to read it, but not before it is complete. No
# tensor has to be exchanged for that. All that the others need to know is *that rank 0 has got this far*.
# How can they know?
#
# **You will learn** what a barrier promises and what it does not, what it costs to wait for the
# slowest, and how ranks can learn in only a few rounds that all of them have arrived.
#
# **You need** chapters [01](01_point_to_point.ipynb), [02](02_broadcast.ipynb) (trees, `simulate`) and
# [07](07_all_reduce.ipynb) (streams).
#
# **Time:** 65 minutes, with 1 exercise.

# %%
import time

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it promises
#
# A **barrier** moves no data. It promises one thing only: **no rank leaves before the last one has
# entered**.
#
# ![A time line of three ranks that sleep 0, 1 and 2 seconds. Rank 0 waits 2 seconds, rank 1 waits 1 second, and when rank 2 enters after 2 seconds all three leave together](../imgs/barrier.png)
#
# In the picture, rank $r$ sleeps for $r$ seconds and then enters. All three leave after about 2 seconds,
# when the *last* one has arrived. Here it runs ten times as fast, so that you wait less:

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
# Without a barrier, which of them leave after rank 2 has entered?

# %% tags=["nbval-ignore-output"]
times = run(sleep_then_meet, 3, False)
show_who_leaves_late(times)

# %% tags=["claim"]
assert max(times[0][1], times[1][1]) < times[2][0], "only rank 2 leaves after the last has entered"

# %% [markdown]
# Only rank 2 does, and it is the last one itself. (All processes of one computer read the same clock. The
# clocks of two computers never agree exactly, so you could not compare their times like that.)
#
# On a real clock, the barrier in the picture takes a little more than 2 seconds, and never the same time
# twice. `simulate`, which you know from chapter 02, has a virtual clock: a sleep takes exactly what it says,
# a message here takes no time at all, and you need not wait. Here are sleep and barrier together, in
# whole seconds:

# %%
def sleep_whole_seconds():
    began = time.monotonic()
    time.sleep(dist.get_rank())
    dist.barrier()
    return time.monotonic() - began


for r, seconds in enumerate(simulate(sleep_whole_seconds, 3, alpha=0.0, beta=0.0)):
    print(f"rank {r} leaves after {seconds} s")

# %% [markdown]
# ### What it does not promise
#
# A barrier says: *all ranks have got this far*. Here rank 0 starts a send, rank 1 starts to receive it into
# `y`, and then both enter a barrier.
#
# **Predict:** may rank 1 read `y` right after the barrier?
#
# <details><summary>It may: both are past the message</summary>
#
# No: both have <em>started</em> the message. They have got this far, but it may not have arrived.
# </details>
#
# <details><summary>It may not: the message may still be on its way</summary>
#
# Yes: only <code>wait()</code> on the request itself says that a message is complete.
# </details>
#
# <details><summary>It may, as long as the message is small</summary>
#
# No: then it will usually have arrived, but nothing promises that.
# </details>

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
# A barrier completes no messages. After `wait()` on the request, `y` is 1. Before that, even after a
# barrier, its value is not defined, so we do not look.
#
# ## Often you do not need one
#
# An all-reduce cannot end on any rank before every rank has entered, since the sum depends on what the last
# one brings. So it holds every rank back, just as a barrier does. Here is the first run again, with an
# all-reduce in place of the barrier:

# %%
def sleep_then_add():
    time.sleep(0.1 * dist.get_rank())
    entered = time.monotonic()
    dist.all_reduce(torch.ones(1))
    return entered, time.monotonic()


show_who_leaves_late(run(sleep_then_add, 3))

# %% [markdown]
# If all you want is that no rank goes on before the last has arrived, an all-reduce that you need anyway
# does the job, and a barrier next to it is a second wait. A broadcast does not: with plain gloo, a
# rank may be gone before the others have arrived.
#
# That was gloo. **On a GPU**, an all-reduce of NCCL holds back the *stream* and not your program, which goes
# on at once (chapter 07). There `dist.barrier()` does something that an all-reduce does not do: it
# [blocks the program](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier)
# until the barrier is complete.
#
# So when do you need a barrier? When ranks depend on one another in a way that no message shows. Rank 0
# downloads a file and the others read it: the barrier goes between the two. (On several machines without a
# shared disk, local rank 0 of *each* machine downloads.) Or you measure time and want all
# ranks to start together (chapter [14](14_bandwidth.ipynb)): the barrier goes *before* the first call that
# you time.
#
# ## What it costs
#
# The messages of a barrier are tiny. The waiting is what costs: **at a barrier, every rank becomes as slow
# as the slowest**. A rank that is late is called a *straggler*.
#
# ![Three ranks and three steps; rank r is slow in step r + 1. With a barrier after every step two ranks wait in each step, and all are done after 6. Without barriers each rank is slow once, and all are done after 4](../imgs/straggler.png)
#
# In the picture, each rank is slow *once*. With a barrier after each step, it also pays for everyone else's
# bad moments. Without barriers it pays only for its own.
#
# Here is the same thing as a real run. `timeline` shows where the time went: a thin grey bar is a rank's own
# code, and a box is a rank that waits. What changes if you take the barrier out? Try it.

# %% tags=["nbval-ignore-output"]
def slow_once():
    for step in range(3):
        time.sleep(0.2 if step == dist.get_rank() else 0.1)
        dist.barrier()


timeline(run(slow_once, 3))

# %% [markdown]
# In step $r + 1$ rank $r$ sleeps longest, and the two others wait for it. (The times are those of this one
# run; yours differ a little.)
#
# Now take a larger case: eight ranks do 1000 steps of 1 second each. With a probability of 5 %, a step takes
# 3 seconds instead: a slow disk, another program, the garbage collector. No process is started here; we only
# add up numbers.
#
# **Predict:** without barriers, the average rank needs about 1100 seconds. How long does it take with a
# barrier after every step, and how long with one after every 100 steps?
#
# <details><summary>About 1100 seconds, and about 1100</summary>
#
# No: at a barrier, each rank also waits for the slow steps of the seven others.
# </details>
#
# <details><summary>About 1700 seconds, and about 1200</summary>
#
# Yes: about one step in three has a slow rank. Over 100 steps, most of the bad luck averages out.
# </details>
#
# <details><summary>About 3000 seconds, and about 1200</summary>
#
# No: for that, some rank would have to be slow in every step. In two steps of three none is.
# </details>


# %%
def seconds_until_all_are_done(seconds, barrier_every):
    """Add up steps; at a barrier every clock jumps to that of the last rank."""
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
# With a barrier after every step, it takes about 50 % longer than without. The probability that *none* of the
# eight ranks is slow is only $0.95^8 \approx 66\,\%$, so about one step in three takes 3 seconds. With more ranks
# it gets worse:

# %%
for ranks in (1, 8, 64, 512):
    all_fast = 0.95**ranks
    print(f"{ranks:3} ranks: a step takes {1 + 2 * (1 - all_fast):.2f} s on average")

# %% [markdown]
# With a barrier after every 100 steps, most of the bad luck averages out: in 100 steps each rank has about
# five slow ones.
#
# And if it is not luck?
#
# **Predict:** now rank 3 is always slow, at 1.5 seconds a step, and the others never are. How long do the
# 1000 steps take with few barriers?
#
# <details><summary>1500 seconds: you gain nothing</summary>
#
# Yes: rank 3 needs as long as that for its own steps, with or without barriers.
# </details>
#
# <details><summary>About 1060 seconds: it averages out</summary>
#
# No: that is the average over ranks. For that, all ranks would have to be slow in turn.
# </details>
#
# <details><summary>1000 seconds: the others need not wait</summary>
#
# No: the others are done by then, but all are done only when rank 3 is.
# </details>

# %%
always_slow = torch.ones(steps, n)
always_slow[:, 3] = 1.5

for every in (1, 10, 100, 1000):
    done = seconds_until_all_are_done(always_slow, every)
    print(f"a barrier every {every:4} steps: done after {done} s")

# %% [markdown]
# Only bad luck averages out. A rank that is always slow has to be repaired, or given less to do.
#
# It does not take a `barrier` to make ranks wait for the slowest: every collective in which each rank needs
# something from every other does that. Data-parallel training has one in each step, the all-reduce of the
# gradients, and so one slow machine can slow down a thousand.
#
# ## Building one: a rank in the middle
#
# How can a rank *know* that all the others have entered? Not from a clock, and not by sleeping "long enough".
# It has to be told, and here the only way to tell it is a message.
#
# The obvious way: every rank tells rank 0, and when rank 0 has heard from all, it answers them.

# %%
def central():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)  # its value means nothing; that it arrives means everything
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
# **Predict:** what would go wrong without the second half, in which rank 0 answers?
#
# <details><summary>Nothing: all tokens have reached rank 0</summary>
#
# No: rank 0 knows that all have entered, but the others do not.
# </details>
#
# <details><summary>Rank 0 would wait forever</summary>
#
# No: rank 0 hears from all the others. It is they who hear nothing.
# </details>
#
# <details><summary>The other ranks would leave too early</summary>
#
# Yes: each sends its token and goes on, whoever is still missing.
# </details>
#
# We can find out from the record of the messages. `heard_from` follows them: with each message, a rank hears
# from its sender, and from all the ranks that the sender had heard from before. (This is the relation that
# Leslie Lamport called [happened before](https://doi.org/10.1145/359545.359563).)

# %%
from headcount.trace.trace import heard_from


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
    for r, heard in enumerate(heard_from(run(function, 4).trace)):
        print(f"   when rank {r} leaves, it has heard from {sorted(heard)}")

# %% [markdown]
# Without the answer, ranks 1, 2 and 3 leave without having heard from any other rank. A function is a barrier
# exactly when each rank, as it leaves, has heard from all the others, however fast or slow any of them is.
# That is how `check` will judge yours: it needs no stopwatch, and luck does not help.
#
# The central barrier is right, and takes only $2(n-1)$ messages. But rank 0 handles them one by one, in
# $2(n-1)$ rounds, while the others are idle.
#
# ## A tree
#
# From chapters 02 and 04 you know what relieves a rank in the middle: a tree. On the way up, tokens are
# *combined*: a rank reports once, for itself and for all ranks below it. Then the answer comes down the same
# tree.
#
# **Predict:** how many messages, and how many rounds, on 8 ranks?
#
# <details><summary>14 messages in 6 rounds</summary>
#
# Yes: seven tokens up and seven down, in three rounds each way.
# </details>
#
# <details><summary>14 messages in 14 rounds</summary>
#
# No: that is the central barrier. In a tree, tokens travel at the same time.
# </details>
#
# <details><summary>7 messages in 3 rounds</summary>
#
# No: that is the way up. The answer has to come down again.
# </details>


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
# It takes as few messages as the central one, $2(n-1)$, in at most $2 \lceil \log_2 n \rceil$ rounds. But the
# news has to go up first and then come down, and near the root few ranks have anything to do.
#
# ## Dissemination: every rank tells another
#
# Better still, let **every rank** send a token and receive one in every round. In round 1 it sends to its
# right neighbour, and has then heard from two ranks: itself and the one to its left. Which rank can tell it
# of two more in round 2?
#
# ![Five ranks and three rounds with steps 1, 2 and 4. At the start each rank knows of itself; after round 1 of two ranks, after round 2 of four, after round 3 of all five](../imgs/dissemination.png)
#
# The boxes show which ranks a rank has heard from, itself included.
#
# **Predict:** how many rounds would 8 ranks need? And 9?
#
# <details><summary>7, and 8</summary>
#
# No: a rank passes on all that it knows, so it learns of more than one rank in a round.
# </details>
#
# <details><summary>3, and 3</summary>
#
# No: after three rounds a rank knows of 8 at most, itself included. The ninth needs one more.
# </details>
#
# <details><summary>3, and 4</summary>
#
# Yes: what a rank knows doubles in each round: 1, 2, 4, 8, and then 9.
# </details>
#
# ## Exercise: barrier
#
# Write the dissemination barrier. It takes exactly $\lceil \log_2 n \rceil$ rounds and
# $n \lceil \log_2 n \rceil$ messages, and no message when $n$ is 1. It must also work when it is called twice
# in a row, where a fast rank may be in the second barrier while a slow one is still in the first.
#
# The token can be any tensor that has the same size and dtype everywhere, such as `torch.zeros(1)`. Before you
# write: the messages are tiny. Must a round wait for the one before, or may a rank start all of its messages at
# once?

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
# Here is what a rank knows after each round, for any number of ranks:

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
# After $k$ rounds a rank has heard from itself and from the $2^k - 1$ ranks to its left: what it knows
# **doubles** in each round, until it knows of all. So it takes $\lceil \log_2 n \rceil$ rounds, for any $n$
# and not only for powers of two. If messages go from one rank to another, and a rank receives only one in
# each round, no barrier can take fewer: where no rank has heard from more than $k$ ranks, none has heard from
# more than $2k$ a round later.
#
# This is the *dissemination barrier* of Hensgen, Finkel and Manber
# ([Two algorithms for barrier synchronization, 1988](https://doi.org/10.1007/BF01379320)).
# Mellor-Crummey and Scott compared it with many others on real machines
# ([1991](https://doi.org/10.1145/103727.103729)). And it is
# [what gloo does](https://github.com/pytorch/gloo/blob/main/gloo/barrier.cc) in the `dist.barrier()` that you
# called above.
#
# The price is a larger number of messages: $n \lceil \log_2 n \rceil$ instead of $2(n-1)$.
#
# Must a round wait for the one before? Here are the same messages, all started at once.
#
# **Predict:** which ranks of 8 has rank 0 heard from in the end?
#
# <details><summary>All eight</summary>
#
# No: a message tells what its sender knew when it sent it, and nobody had heard anything yet.
# </details>
#
# <details><summary>0, 4, 6 and 7</summary>
#
# Yes: from itself and the three ranks that send to it. None of them had heard from others before.
# </details>
#
# <details><summary>0, 1, 2 and 4</summary>
#
# No: these are the ranks that it sends to. It hears from those 1, 2 and 4 places to its left.
# </details>

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
# A message can tell only what its sender knew **when it sent it**, and here every sender knew only of itself.
# It is not enough to send the right messages. They must also be sent in the right order.
#
# Now your barrier, between ranks that sleep:

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
# - It makes every rank as slow as the slowest. Random slowness averages out if the ranks meet less often; a
#   rank that is always slow does not.
# - An all-reduce also holds every rank back; with NCCL it holds back the stream and not your program.
# - Central: $2(n-1)$ messages and $2(n-1)$ rounds. Tree: as many messages, at most
#   $2 \lceil \log_2 n \rceil$ rounds. Dissemination: $n \lceil \log_2 n \rceil$ messages, and
#   $\lceil \log_2 n \rceil$ rounds, the fewest possible if a rank receives one message at a time.
# - A message tells what its sender knew when it sent it.
#
# Back to the data set. Rank 0 unpacks it and then enters the barrier. The others enter at once, and read
# when they leave. Then the data set is complete: each of them has heard from rank 0, directly or through
# others. If rank 0 takes too long, the wait ends in an error: after [10 minutes with NCCL and 30 with
# gloo](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group), unless
# `init_process_group` is given another `timeout`.
#
# **Where else it is used:** when one rank writes a checkpoint that the others will read; to line up the ranks
# before time is measured (chapter 14); in tests. In a training loop you hardly ever need one.
#
# ### Check yourself
#
# <details><summary>Rank r sleeps r seconds and then enters a barrier. After how many seconds do 8 ranks leave?</summary>
#
# After about 7 seconds, when rank 7 has arrived.
# </details>
#
# <details><summary>Why does <code>rank ^ step</code> (flip one bit) find a partner for each rank on 8 ranks, but not on 6?</summary>
#
# With step 4, rank 2 would talk to rank 6 and rank 3 to rank 7, which do not exist on 6 ranks.
# (rank + step) mod n exists for every n.
# </details>
#
# <details><summary>On 1024 ranks the central barrier sends 2046 messages and dissemination 10,240. Why is dissemination still faster?</summary>
#
# Its messages travel at the same time, in 10 rounds. The central ones queue at rank 0, for 2046 rounds.
# </details>
#
# **Next:** [10 · scatter_reduce](10_scatter_reduce.ipynb): a reduction inside one tensor, on one rank.
