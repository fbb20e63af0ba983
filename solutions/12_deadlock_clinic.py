# %% [markdown]
# # 12 · Deadlock clinic
#
# In 54 days of its training, Llama 3 405B was [interrupted 466 times](https://arxiv.org/abs/2407.21783),
# 419 of them unexpectedly: nearly eight times a day. Most of those were hardware faults, and many are
# easy to find: a program that crashes tells you a line. A program that hangs tells you nothing. All
# processes are alive, none of them moves, and the GPUs cost money by the minute. Before you can repair it,
# you have to know which of the thousands of ranks is to blame, and which only wait for it.
#
# **You will learn** to read why a program hangs: which rank waits for which, where the cycle is, and which
# line is really to blame. You will fix three programs that hang, examine some harder cases, and then write
# the heart of a deadlock detector yourself.
#
# **You need** chapters [01](01_point_to_point.ipynb) and [02](02_broadcast.ipynb), and what an
# all-reduce does: every rank ends with the sum over all ranks.
#
# **Time:** 2 hours, and 5 exercises.

# %%
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# The patients in this clinic are short programs that go wrong. For each of them we do three things: run it,
# **read the verdict**, and look for the cure. With `may_fail=True`, `run` shows what went wrong instead of
# stopping the notebook.
#
# ## Patient 1: a ring in which all ranks send first
#
# Every rank passes `x` to its right neighbour and returns what it receives from the left.
#
# In chapter 01 *two* ranks that both sent first were stuck. Now there are four, and no rank sends to the
# rank that it receives from.
#
# **Predict:** how many of the four ranks receive anything?
#
# <details><summary>All four, since no two ranks wait for each other</summary>
#
# No: each waits for its right neighbour, and that leads all the way round.
# </details>
#
# <details><summary>Two: every second rank, from its left neighbour</summary>
#
# No: for that, every second rank would have to receive first. Here all of them send.
# </details>
#
# <details><summary>None, since all of them send first</summary>
#
# Yes: no rank reaches its receive, so no send ever ends.
# </details>

# %%
def ring_that_hangs(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    dist.send(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    return y


ring = run(ring_that_hangs, 4, torch.ones(2), may_fail=True)
ring

# %% [markdown]
# ### How to read it
#
# Each part of the verdict says which rank waits, in which **call**, **for which rank**, and on which
# **line**. Write "rank 0 waits for rank 1" as an arrow from 0 to 1, and you have the **wait-for graph**:
# the picture in the verdict. You can also have it as data:

# %%
for wait in ring.failure.waits:
    print(f"rank {wait.rank} waits for {list(wait.peers)}")
print("the cycle:", list(ring.failure.cycle))

# %% [markdown]
# The arrows lead back to where they began. That is the whole disease: on a **cycle** each rank waits for
# another that waits too, and no line of code that would help is ever reached.
#
# ![A graph of ranks. Ranks 1, 2 and 3 wait for each other in a cycle; ranks 0 and 4 wait for rank 1. These five are stuck. Rank 5 waits for rank 6, rank 6 for rank 7, which runs: these three can go on](../imgs/wait_for_graph.png)
#
# Look at ranks 0 and 4 in the picture. They are on no cycle, but they wait for one, so they are
# stuck as well. Ranks 5 and 6 wait too, but they can still go on: rank 7 runs.
#
# ## Exercise: fix the ring
#
# Write `unblock_ring`. It does the same work as `ring_that_hangs`, for any number of ranks, and
# cannot hang. Each rank sends one message; a rank that is alone sends none.
#
# You know one cure from chapter [01](01_point_to_point.ipynb): `isend`. Find another, **with blocking `send` and
# `recv` only**: `isend`, `irecv` and batches earn half. Which arrows do you have to remove from the graph? And do
# it so that 8 ranks need **two rounds**, and not eight; an odd number of ranks may need three.

# %%
def unblock_ring(x: torch.Tensor) -> torch.Tensor:
    """The left neighbour's x."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    if rank % 2:  # every second rank receives first
        dist.recv(y, rank - 1)
        dist.send(x, (rank + 1) % n)
    else:
        dist.send(x, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
    return y
    ### END SOLUTION


check(unblock_ring)

# %% [markdown]
# There is more than one cure without `isend`. Here are two:
#
# - *one gives way*: rank 0 receives first, all others send first;
# - *odd and even*: odd ranks receive first. With 5 ranks, ranks 4 and 0 are neighbours, and both are
#   even.
#
# **Predict:** what do these two do on 5 ranks?
#
# <details><summary>Neither hangs: they take 5 rounds and 3</summary>
#
# Yes: the first passes one message after the other. In the second, the two even neighbours cost one round
# more.
# </details>
#
# <details><summary>Neither hangs: they take 2 rounds each</summary>
#
# No: if only rank 0 receives first, then only rank 4 can send at first, then rank 3, and so on.
# </details>
#
# <details><summary>The second hangs: ranks 4 and 0 both send first</summary>
#
# No: rank 4 waits for rank 0, but rank 0 only waits for rank 1, which receives. There is no cycle.
# </details>

# %%
def pass_on(x, receives_first):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = torch.empty_like(x)
    if receives_first:
        dist.recv(y, (rank - 1) % n)
        dist.send(x, (rank + 1) % n)
    else:
        dist.send(x, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
    return y


def one_gives_way(x):
    return pass_on(x, receives_first=dist.get_rank() == 0)


def odd_and_even(x):
    return pass_on(x, receives_first=dist.get_rank() % 2 == 1)


for n in (4, 5, 8):
    for cure in (one_gives_way, odd_and_even):
        traffic = run(cure, n, torch.ones(1)).trace.traffic
        print(f"{n} ranks, {cure.__name__:14} {traffic.messages} messages, {traffic.rounds} rounds")

# %% [markdown]
# A cycle is broken as soon as **one** rank acts differently. But if only one rank gives way, the messages go
# round one after the other, and that takes $n$ rounds. With `isend` on every rank it takes a single one.
#
# ## Patient 2: two tags
#
# Rank 0 sends to rank 1 with tag 7, and rank 1 receives from rank 0 with tag 8.
#
# **Predict:** what happens?
#
# <details><summary>The message arrives, since there is only one</summary>
#
# No: a tag is not just a label. A receive takes only messages with its own tag.
# </details>
#
# <details><summary>Both ranks wait forever</summary>
#
# Yes: the send waits for a receive with tag 7, and the receive for a send with tag 8.
# </details>
#
# <details><summary>PyTorch reports that the tags differ</summary>
#
# No: messages with both tags may still arrive, so neither rank can know. You have to look at both of them.
# </details>

# %%
def two_tags():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=7)
    else:
        dist.recv(x, 0, tag=8)


run(two_tags, 2, may_fail=True)

# %% [markdown]
# It is a cycle of two arrows, and a strange one: the send waits for a receive and the receive for a
# send. Both are there! But messages are matched by sender, receiver **and tag**, like letters to a house
# with several letter boxes. The verdict says which tag the other side uses.
#
# ## Patient 3: an early return
#
# Four ranks sum their values, 3, 1, 0 and 2. A rank with a zero has nothing to add, so rank 2 returns before
# the all-reduce.
#
# **Predict:** what do the others do?
#
# <details><summary>They get 6: a zero adds nothing</summary>
#
# No: its value was not needed, but its call was.
# </details>
#
# <details><summary>They wait for rank 2, and there is no cycle</summary>
#
# Yes: all arrows end at rank 2, which waits for no one.
# </details>
#
# <details><summary>They wait for each other, in a cycle</summary>
#
# No: a cycle would need arrows that lead on from rank 2, and it waits for no one.
# </details>

# %%
def early_return(values):
    mine = values[dist.get_rank()]
    if mine == 0:
        return None  # nothing to add
    total = torch.tensor([mine])
    dist.all_reduce(total)
    return total


early = run(early_return, 4, [3, 1, 0, 2], may_fail=True)
early

# %% [markdown]
# The arrows end at rank 2, and rank 2 **has returned**. It will make no more calls, so no rank that waits
# for it can ever go on. A zero adds nothing to the sum, so the *value* was not needed. The *call* was.
#
# ## Patient 4: an exception on one rank
#
# Again three ranks wait in an all-reduce for the fourth. Which rank does the verdict name?

# %%
def one_raises():
    x = torch.ones(1)
    if dist.get_rank() == 2:
        x = x.view(3)  # one element cannot become three
    dist.all_reduce(x)


run(one_raises, 4, may_fail=True)

# %% [markdown]
# The others did wait, but that is a *consequence*, and a good verdict names the **cause**. In your own
# log files you will see both, usually with hundreds of consequences on top. Look for the one rank
# that says something different.
#
# It is worse if the exception is caught. Here rank 2 has an empty batch, and the loop has been made robust:
# a batch that cannot be used is skipped. At the end of the epoch there is a barrier.
#
# **Predict:** where are the four ranks in the end?
#
# <details><summary>All four are in the barrier</summary>
#
# No: three are still in the all-reduce. Without rank 2 it cannot end.
# </details>
#
# <details><summary>Three are in the all-reduce, and rank 2 has returned</summary>
#
# No: rank 2 has skipped its batch, but not the barrier that follows.
# </details>
#
# <details><summary>Three are in the all-reduce, and rank 2 in the barrier</summary>
#
# Yes: rank 2 skipped the all-reduce with its batch, and went on.
# </details>

# %%
def skip_bad_batches(batches):
    try:
        loss = batches[dist.get_rank()][0]
        dist.all_reduce(loss)
    except IndexError:
        pass  # skip this batch
    dist.barrier()  # the end of the epoch


batches = [torch.ones(2), torch.ones(2), torch.ones(0), torch.ones(2)]
run(skip_bad_batches, 4, batches, may_fail=True)

# %% [markdown]
# The verdict names the two calls that met. No log mentions an exception any more. A rank that skips its
# batch still has to make the calls of that step, for example with a loss of zero.
#
# ## Patient 5: a collective in a branch
#
# One rank writes the log, so only that rank needs the mean of the losses. Or so it seems. Here it is rank 1
# of three.
#
# **Predict:** which ranks are stuck?
#
# <details><summary>Rank 1, which writes the log</summary>
#
# Yes: it waits for calls that ranks 0 and 2 never make, since they have returned.
# </details>
#
# <details><summary>Ranks 0 and 2, which do not</summary>
#
# No: they make no call in which they could wait, and return at once.
# </details>
#
# <details><summary>None: the others need no mean</summary>
#
# No: they do not need the mean, but rank 1 needs their losses.
# </details>

# %%
def branch_that_hangs(loss, log):
    mean = loss.clone()
    if log:
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        print(f"mean loss {mean.item():.4f}")
    return mean


def train_one_step():
    loss = torch.tensor(1.0 + dist.get_rank())
    return branch_that_hangs(loss, log=dist.get_rank() == 1)


run(train_one_step, 3, may_fail=True)

# %% [markdown]
# The rule: **a collective must be reached by all ranks of its group.** So a branch that only some of them
# take must not contain it. (A branch for the members of a smaller group is fine, and common:
# `if rank in members: dist.all_reduce(x, group=group)`. All of its ranks take it.)
#
# ## Exercise: fix the branch
#
# Write `unblock_branch`. It returns the mean of the losses on **every** rank, and leaves `loss` itself
# as it is. `loss` is a tensor with a single number and no dimension. `dist.all_reduce` is
# allowed. Whether you print when `log` is true is up to you.

# %%
def unblock_branch(loss: torch.Tensor, log: bool) -> torch.Tensor:
    """The mean loss over all ranks."""
    ### BEGIN SOLUTION
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if log:
        print(f"mean loss {mean.item():.4f}")
    return mean
    ### END SOLUTION


check(unblock_branch)

# %% [markdown]
# ## Patient 6: the branch is somewhere else
#
# The same illness is harder to see when the collective is hidden. This loop sums the losses of all ranks in
# every step, and after the first of three steps rank 0 saves a checkpoint, for which it computes the norm of
# the weights. Saving a file is none of the other ranks' business, or is it?
#
# **Predict:** where does it hang?
#
# <details><summary>In step 0, in the all-reduce of the norm</summary>
#
# No: the others do not call that one, but their next all-reduce, of the losses, meets it.
# </details>
#
# <details><summary>In step 1, in the all-reduce of the losses</summary>
#
# No: rank 0's norm meets the others' losses of step 1, and all of them go on with a wrong sum.
# </details>
#
# <details><summary>In step 2, in the all-reduce of the losses</summary>
#
# Yes: in step 1 rank 0 falls one call behind, and by its last call the others have finished.
# </details>

# %%
def norm_of(weights):
    total = weights.square().sum()
    dist.all_reduce(total)  # each rank has a part of the weights
    return total.sqrt().item()


def save_checkpoint(weights):
    return {"weights": weights, "norm": norm_of(weights)}


def train_three_steps():
    weights = torch.ones(3)
    for step in range(3):
        loss = torch.tensor(1.0 + dist.get_rank())
        dist.all_reduce(loss)
        if dist.get_rank() == 1:
            print(f"step {step}: the losses sum to {loss.item()}")
        if dist.get_rank() == 0 and step == 0:
            save_checkpoint(weights)


far_away = run(train_three_steps, 3, may_fail=True)
far_away

# %% [markdown]
# The verdict is true, and yet the line that it names is innocent: the all-reduce of the losses is called by
# all ranks, in every step. And look at what rank 1 printed before it returned. $1 + 2 + 3 = 6$, so the
# second sum is wrong. Collectives are matched by order: the norm on rank 0, hidden two functions away from
# the branch, met the *loss* of the others. From then on rank 0 is one call behind, until the others
# have finished.
#
# So do not stop at the call that hangs. Compare what the ranks called from the beginning, and look for the
# **first** difference:

# %%
for r, operations in enumerate(far_away.trace.operations):
    print(f"rank {r}:", ", ".join(f"{call.kind} (line {call.site.line})" for call in operations))

# %% [markdown]
# The second call of rank 0 comes from a different line, that in `norm_of`.
#
# ## Patient 7: two orders
#
# Every rank makes both calls, but not all in the same order: rank 0's first call is an all-reduce, rank
# 1's a broadcast.
#
# **Predict:** which of rank 1's calls does rank 0's all-reduce meet?
#
# <details><summary>The all-reduce, its second call</summary>
#
# No: that would need something to tell the calls apart, and collectives have no tags.
# </details>
#
# <details><summary>The broadcast, its first call</summary>
#
# Yes: the first call of one rank meets the first call of the others, whatever it is.
# </details>
#
# <details><summary>Neither: it waits for an all-reduce</summary>
#
# No: it does not wait for an operation, but for the next call of each rank.
# </details>

# %%
def order_that_hangs(x):
    biggest, first = x.clone(), x.clone()
    if dist.get_rank() % 2 == 0:
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
        dist.broadcast(first, src=0)
    else:
        dist.broadcast(first, src=0)
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest + first


run(order_that_hangs, 3, torch.ones(2), may_fail=True)

# %% [markdown]
# Collectives have no tags; within a group they are matched **by order alone**. Here the first calls of two
# ranks are different operations, and that is an error even if it does not hang. With a
# plain backend it may hang, or crash, or take the bytes of one operation for those of the other.
#
# Real programs get here by looping over a `set`, or over the files of a directory: the elements are the
# same on every rank, but not their order.
#
# PyTorch can look for this itself, as you will see at the end of the chapter.
#
# ## Exercise: fix the order
#
# Write `unblock_order`: it returns the maximum over ranks of `x`, plus rank 0's `x`. `x` stays as it
# is. `dist.all_reduce` and `dist.broadcast` are allowed.
#
# You could make the two calls in one order on every rank, which earns half. But need no order at all: make
# **one** collective of the two. If rank 0 puts its `x` into a maximum a second time, what must the
# others put in there so that it comes out unchanged? (`x` may hold floating-point numbers or integers.)

# %%
def unblock_order(x: torch.Tensor) -> torch.Tensor:
    """MAX over ranks of x, plus rank 0's x."""
    ### BEGIN SOLUTION
    lowest = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    first = x if dist.get_rank() == 0 else torch.full_like(x, lowest)
    both = torch.stack([x, first])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
    ### END SOLUTION


check(unblock_order)

# %% [markdown]
# Libraries do the same with many small collectives: what goes out in one call cannot get out of order.
# (And one call pays one latency.)

# %% [markdown]
# ## Patient 8: two groups, three groups
#
# Large models use several groups at once: one for data, one for tensor and one for pipeline parallelism.
# Here there are two groups of the same ranks, one for gradients and one for statistics, and odd ranks
# report their statistics first. Each group sees only one call, so *inside* a group no order can be wrong.
#
# **Predict:** what happens on four ranks?
#
# <details><summary>Even ranks wait for odd ones, and odd for even</summary>
#
# Yes: each rank is in its first call, and the others that this call needs are in one of the other group.
# </details>
#
# <details><summary>It works: no group sees two orders</summary>
#
# No: a rank makes one call at a time. While it is in one group's call, the other group waits for it.
# </details>
#
# <details><summary>Calls of the two groups meet, and mix their numbers</summary>
#
# No: calls of different groups never meet. Each waits for its own group.
# </details>

# %%
def two_groups(in_order):
    everyone = list(range(dist.get_world_size()))
    for_gradients, for_statistics = dist.new_group(everyone), dist.new_group(everyone)
    gradients, statistics = torch.ones(4), torch.ones(1)
    if in_order or dist.get_rank() % 2 == 0:
        dist.all_reduce(gradients, group=for_gradients)
        dist.all_reduce(statistics, group=for_statistics)
    else:
        dist.all_reduce(statistics, group=for_statistics)
        dist.all_reduce(gradients, group=for_gradients)
    return gradients[0].item(), statistics.item()


run(two_groups, 4, False, may_fail=True)

# %% [markdown]
# The even ranks are in a call of one group, and the odd ones in a call of the other. Would it help if no
# two ranks shared more than one group? Here are three ranks, with a group for each pair:

# %%
def three_groups(in_order):
    pairs = [(0, 1), (1, 2), (0, 2)]
    groups = {pair: dist.new_group(pair) for pair in pairs}  # every rank makes all three
    mine = {0: [(0, 1), (0, 2)], 1: [(1, 2), (0, 1)], 2: [(0, 2), (1, 2)]}[dist.get_rank()]
    if in_order:
        mine = sorted(mine)
    sums = []
    for pair in mine:
        x = torch.ones(1)
        dist.all_reduce(x, group=groups[pair])
        sums.append(x.item())
    return sums


run(three_groups, 3, False, may_fail=True)

# %% [markdown]
# It hangs as well. Rank 0 is in a call of the group (0, 1) and cannot get to (0, 2). Rank 1 is in (1,
# 2), and rank 2 in (0, 2). Each **holds** one thing and **waits** for another, which a different rank
# holds.
#
# This is the classic deadlock, known from locks and printers long before there were collectives. Coffman,
# Elphick and Shoshani wrote down in 1971 ([System Deadlocks](https://doi.org/10.1145/356586.356588)) what it
# takes: things that cannot be shared (*mutual exclusion*), *hold and wait*, nothing that can be taken away by
# force (*no preemption*), and a cycle (*circular wait*). If any one of the four is missing, there is no
# deadlock.
#
# The usual cure takes the cycle away: put all groups in one order, and let every rank use its groups in
# that order.

# %%
print(run(two_groups, 4, True))
print(run(three_groups, 3, True))

# %% [markdown]
# ## Patient 9: the wrong handle
#
# In a pipeline, each stage gets an activation from the left, passes it on to the right, gets a gradient from
# the right, and passes it back to the left. Both receives are posted early, that of the activation first,
# and their handles are kept in a list. When a stage needs one of the two, it calls
# `requests.pop().wait()`. With two stages it works.
#
# **Predict:** which ranks wait for which if there are four?
#
# <details><summary>Each of ranks 1, 2 and 3 for its left neighbour</summary>
#
# No: that would be right, since activations arrive from the left. But look at which handle <code>pop()</code>
# takes.
# </details>
#
# <details><summary>Each of ranks 0, 1 and 2 for its right neighbour, and 3 for 2</summary>
#
# Yes: <code>pop()</code> takes the <em>last</em> handle, and in the middle that is the gradient's, from
# the right.
# </details>
#
# <details><summary>None: each message has a receive of its own</summary>
#
# No: all receives are posted, but a stage that waits for the wrong one sends nothing.
# </details>

# %%
def pipeline_step(x, handle=-1):
    rank, n = dist.get_rank(), dist.get_world_size()
    activation, gradient, requests = x.clone(), torch.ones_like(x), []
    if rank > 0:
        requests.append(dist.irecv(activation, rank - 1))
    if rank < n - 1:
        requests.append(dist.irecv(gradient, rank + 1))
    if rank > 0:
        requests.pop(handle).wait()  # the activation is here
    if rank < n - 1:
        dist.send(activation + 1, rank + 1)
        requests.pop(handle).wait()  # the gradient is here
    if rank > 0:
        dist.send(2 * gradient, rank - 1)
    return gradient.item()


print(run(pipeline_step, 2, torch.ones(1)))
run(pipeline_step, 4, torch.ones(1), may_fail=True)

# %% [markdown]
# `requests.pop()` takes the handle that was added **last**, so a stage in the middle waits for its
# gradient before it has passed on any activation. The first and the last stage have only one request,
# which is why two stages work. The verdict gives two lines for each of these waits: where the rank waits,
# and where the receive was *posted*. The second tells you which message it waits for.
#
# The cure is to take the handles in the order in which they were added (or, better, to give each a name):

# %%
print(run(pipeline_step, 4, torch.ones(1), 0))

# %% [markdown]
# ## AND and OR
#
# A send or a receive waits for one other rank. There are two more kinds of waiting:
#
# - a **collective** needs *all* the others: AND;
# - a **receive from any rank** needs *one* of the others: OR.
#
# Take four ranks, of which 1 and 2 wait for each other. In one case, rank 0 receives from any rank, and rank 3
# sends to it: OR. In the other, ranks 0 and 3 call an all-reduce: AND.
#
# **Predict:** which ranks are stuck in each case?
#
# <details><summary>OR: 1 and 2. AND: 1 and 2</summary>
#
# No: an all-reduce needs all ranks, so 0 and 3 wait for 1 and 2, which never call it.
# </details>
#
# <details><summary>OR: 1 and 2. AND: all four</summary>
#
# Yes: one message is enough for the receive, but the all-reduce needs all ranks.
# </details>
#
# <details><summary>OR: 0, 1 and 2. AND: all four</summary>
#
# No: rank 0 may hear from any rank, and rank 3 sends to it.
# </details>

# %%
def two_wait_for_each_other(others):
    rank, x = dist.get_rank(), torch.ones(1)
    if rank in (1, 2):
        dist.recv(x, 3 - rank)
    elif others == "AND":
        dist.all_reduce(x)
    elif rank == 0:
        dist.recv(x)  # from any rank
    else:
        dist.send(x, 0)


for others in ("OR", "AND"):
    failure = run(two_wait_for_each_other, 4, others, may_fail=True).failure
    print(others)
    for wait in failure.waits:
        print(f"   rank {wait.rank} waits for {list(wait.peers)}")

# %% [markdown]
# ![Two graphs of four ranks; ranks 1 and 2 wait for each other. Left: rank 0 waits for any of 1, 2 and 3, and rank 3 runs, so rank 0 can go on. Right: ranks 0 and 3 wait for both 1 and 2, so all four are stuck](../imgs/and_or.png)
#
# With OR, one live rank is enough, and a cycle alone proves nothing: rank 0 had an arrow to the
# cycle and finished all the same. With AND, a single stuck rank is enough to stop all of them.
#
# ## Exercise: which ranks can never go on?
#
# Begin with the plain kind of waiting, where each rank waits for at most one other. This is a pure
# function; nothing is sent.
#
# `waits_for` maps each rank to the rank that it waits for. A rank that maps to `None`, or is not a key,
# is running. Return the ranks that can **never** go on, as a sorted list: those on a
# cycle, *and* those whose arrows lead into one. A rank that waits for itself is a cycle of one.

# %%
def stuck_ranks(waits_for: dict[int, int | None]) -> list[int]:
    """Ranks that can never go on, sorted."""
    ### BEGIN SOLUTION
    stuck = []
    for rank in sorted(waits_for):
        seen, at = set(), rank
        while at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at in seen:
            stuck.append(rank)
    return stuck
    ### END SOLUTION


check(stuck_ranks)

# %% [markdown]
# Here is your function on the picture from the beginning, and on what the first patient really did:

# %%
if check(stuck_ranks):
    picture = {0: 1, 1: 2, 2: 3, 3: 1, 4: 1, 5: 6, 6: 7, 7: None}
    print("the picture:", stuck_ranks(picture))
    patient = {wait.rank: wait.peers[0] for wait in ring.failure.waits}
    print("patient 1:  ", stuck_ranks(patient))

# %% [markdown]
# ## Exercise: AND, OR, and ranks that are gone
#
# Now write the whole detector, for every kind of waiting that you have met. A rank may wait for *any* or for
# *all* of several ranks. And some ranks have returned, as in patient 3: they are not stuck, but they will
# make no more calls, so a rank that needs them can never go on.
#
# **Work this one out on paper first.** Rank 4 runs, and rank 5 has returned.
#
# | rank | waits for |
# |---|---|
# | 0 | all of 1 and 2 |
# | 1 | any of 0 and 4 |
# | 2 | all of 1 |
# | 3 | any of 3 and 5 |
#
# Which ranks can certainly go on? Which others can go on because of those? And when you find no more, what
# do you know about the rest? Following arrows, as before, does not help here: ranks 0, 1 and 2 wait for
# each other, and that alone proves nothing.
#
# `waits_for` maps a rank to `("any", ranks)` or `("all", ranks)`; a rank that maps to `None`, or is not a
# key, is running. `gone` is the set of ranks that have returned. They are never listed, whether they are
# keys or not. A wait for any of *no* ranks never ends, and a wait for all of no ranks is over at once.
# Return the ranks that can never go on, sorted.

# %%
def stuck_ranks_any_all(
    waits_for: dict[int, tuple[str, list[int]] | None], gone: set[int]
) -> list[int]:
    """Ranks that can never go on, where they wait for any or all of several, and some are gone."""
    ### BEGIN SOLUTION
    waiting = {r: wait for r, wait in waits_for.items() if wait is not None and r not in gone}
    stuck = set(waiting)
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            how, peers = waiting[r]
            live = [p not in stuck and p not in gone for p in peers]
            if any(live) if how == "any" else all(live):
                stuck.remove(r)
                changed = True
    return sorted(stuck)
    ### END SOLUTION


check(stuck_ranks_any_all)

# %% [markdown]
# Here is your detector on the table above, and on what patients 1 and 3 really did. In the verdict of a run, each
# wait says which ranks it is for, and whether any one of them would do.

# %%
def graph_of(failure):
    waits = {w.rank: ("any" if w.any_of else "all", list(w.peers)) for w in failure.waits}
    return waits, set(failure.ended)


if check(stuck_ranks_any_all):
    table = {0: ("all", [1, 2]), 1: ("any", [0, 4]), 2: ("all", [1]), 3: ("any", [3, 5]), 4: None}
    print("the table:", stuck_ranks_any_all(table, {5}))
    for name, patient in (("patient 1:", ring), ("patient 3:", early)):
        print(name, stuck_ranks_any_all(*graph_of(patient.failure)))

# %% [markdown]
# This is what the grader does each time a rank reports something, and why it needs no timeout for a
# deadlock: the ranks that are left over are stuck **for certain**, and this is known at once. The idea
# is from the MPI checker MUST (Hilbrich and others, [MPI Runtime Error Detection with MUST: Advances in
# Deadlock Detection](https://doi.org/10.1109/SC.2012.79), 2012).
#
# ## Why a timeout names the wrong rank
#
# Without a wait-for graph there is only a timeout: a rank that has waited for too long complains and
# stops. PyTorch's default is 10 minutes with NCCL and 30 minutes otherwise
# ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group)).
#
# Rank 0 waits for rank 1, rank 1 for rank 2, and rank 2 for rank 3, which is in an endless loop. Rank 0
# began to wait first, and rank 2 last.
#
# **Predict:** which rank complains first, and which rank does it blame?
#
# <details><summary>Rank 0, and it blames rank 1</summary>
#
# Yes: it has waited longest, and knows only the rank that it waits for itself.
# </details>
#
# <details><summary>Rank 0, and it blames rank 3</summary>
#
# No: it complains first, but it cannot see what rank 1 waits for, let alone rank 2.
# </details>
#
# <details><summary>Rank 2, and it blames rank 3</summary>
#
# No: it would be right about that. But it began to wait last, so its time is up last.
# </details>

# %%
waits_for = {0: 1, 1: 2, 2: 3, 3: None}  # rank 3 is running: round and round
began = {0: 0.5, 1: 1.4, 2: 2.6}  # when each began to wait, in seconds
patience = 600

for r in sorted(began, key=began.get):
    print(f"{began[r] + patience:6.1f} s: rank {r} complains about rank {waits_for[r]}")

at = 0
while waits_for[at] is not None:
    at = waits_for[at]
print("at the end of the arrows:", at)

# %% [markdown]
# ![A time line. Rank 0 begins first to wait for rank 1, rank 1 for rank 2, rank 2 for rank 3. Rank 3 is in an endless loop. The timeouts come in the order 0, 1, 2; rank 3 never complains](../imgs/who_complains_first.png)
#
# The rank that has waited longest complains first, and that is the **fastest** rank. It blames its
# neighbour, which is just as innocent. The culprit itself never waits, and so never complains. Follow the
# arrows to their end before you blame a rank.
#
# There is one case that no graph can decide, and that still needs a timeout: a rank that *runs*, and may
# finish or may not. Here the call is given 2 seconds. The verdict names the rank that is running, not the
# three that wait for it:

# %%
def one_takes_too_long():
    if dist.get_rank() == 2:
        time.sleep(600)
    dist.all_reduce(torch.ones(1))


stopped = run(one_takes_too_long, 4, seconds=2.0, may_fail=True)
stopped

# %% [markdown]
# `timeline` draws the same run in time. The amber boxes are waits that did not end. Look for the
# lane without one: that rank never began to wait.

# %% tags=["nbval-ignore-output"]
timeline(stopped)

# %% [markdown]
# ## A claim to test: "a ring has no single point of failure"
#
# A ring seems safer than a rank in the middle: no rank is special, and there is no centre that could
# fail.
#
# **Predict:** five ranks pass tensors around the ring, and rank 2 is gone after the first step. How many of
# the other four finish?
#
# <details><summary>Two: those that are not next to it</summary>
#
# No: the neighbours of rank 2 can go no further, so those next to them get stuck in their turn.
# </details>
#
# <details><summary>Three: all but its right neighbour</summary>
#
# No: rank 1 is stuck at once as well, with a message that rank 2 does not take.
# </details>
#
# <details><summary>None: all of them get stuck</summary>
#
# Yes: each waits for a neighbour, and that leads to rank 2 from either side.
# </details>

# %%
def ring_with_a_loss(how):
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = torch.tensor([rank]), torch.empty(1, dtype=torch.int64)
    for step in range(n - 1):
        if rank == 2 and step == 1:
            if how == "killed":
                os._exit(1)
            return
        request = dist.isend(x, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
        request.wait()
        x.copy_(y)


gone = run(ring_with_a_loss, 5, "returns", may_fail=True)
gone

# %%
stuck = [wait.rank for wait in gone.failure.waits]
print("stuck:", stuck, "finished:", [r for r in range(5) if r not in stuck and r != 2])

# %% [markdown]
# Rank 2's right neighbour misses its message, then the next one to the right, all the way round; and on the
# other side rank 1 cannot deliver its own. And if the process is killed:

# %%
run(ring_with_a_loss, 5, "killed", may_fail=True)

# %% [markdown]
# So **every** rank of a ring is a single point of failure. What a ring does not have is a
# *bottleneck*: no rank carries more traffic than the others. That is a statement about speed, not
# about safety. After a loss the job has to start again from a checkpoint, with a ring as with
# any other algorithm; `torchrun` can
# [restart the ranks](https://docs.pytorch.org/docs/stable/elastic/run.html) for you.
#
# ## What to do when it hangs
#
# | what you see | what it often is | what to look at |
# |---|---|---|
# | a cycle of sends | all ranks send first | let one receive first, or `isend` |
# | a send and a receive that wait for each other | tags or groups differ | tag and group of both |
# | "rank 1 has already returned" | an early return, a loop of a different length | the rank that has returned |
# | all wait but one | an exception or an endless loop on that one | the one that does not wait |
# | two different collectives | a different order, a branch, a caught exception | the first call that differs |
# | one rank is a call behind, results are wrong | a collective hidden in a helper | the first call from a different line |
# | a cycle across groups | groups used in different orders | one order for all |
# | a receive that was posted elsewhere | `wait` on the wrong handle | where it was posted |
#
# ### On a machine without this grader
#
# Ask each process where it is: [py-spy](https://github.com/benfred/py-spy) prints the Python stack of a
# running process. Write down the call of every rank, draw the arrows, and follow them.
#
# PyTorch has tools of its own. Three of them work on a CPU, with gloo. The next cells launch four processes
# with `torchrun`, without the grader. In the first, rank 2 takes a different branch, and never reaches the
# barrier.
#
# If rank 2 were still busy elsewhere, an ordinary barrier would wait for half an hour, and then not say which
# rank is missing. Look at what this one says:

# %%
def launch(script, **environment):
    """Run a script on four ranks that torchrun starts, and show the lines that they print, sorted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(script)
        # each rank prints into a file of its own, or their lines could mix
        torchrun = ["torch.distributed.run", "--standalone", "--redirects=1", f"--log-dir={folder}"]
        subprocess.run(
            [sys.executable, "-m", *torchrun, "--nproc_per_node=4", path],
            capture_output=True,
            env={**os.environ, **environment},
        )
        printed = [line for file in Path(folder).rglob("stdout.log") for line in file.open()]
    print(*sorted(printed), sep="", end="")


ONE_IS_MISSING = """
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() != 2:  # rank 2 took a different branch
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=2), wait_all_ranks=True)
    except RuntimeError as error:
        if dist.get_rank() == 0:
            print(error)
"""

launch(ONE_IS_MISSING)

# %% [markdown]
# [`monitored_barrier`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.monitored_barrier)
# exists for gloo only, and is slow, since every rank reports to rank 0. A program that trains with NCCL
# can make a second group on gloo for it.
#
# The second tool is the environment variable
# [`TORCH_DISTRIBUTED_DEBUG=DETAIL`](https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications).
# With it, every collective first checks that all ranks make the same call. That is slow too, so it is
# for finding a mistake and not for every day. Here is patient 7 again. The message is long, so rank 0
# prints only the heart of it, two calls that differ:

# %%
TWO_ORDERS = """
import re

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(2)
try:
    if dist.get_rank() % 2 == 0:
        dist.all_reduce(x)
        dist.broadcast(x, src=0)
    else:
        dist.broadcast(x, src=0)
        dist.all_reduce(x)
except RuntimeError as error:
    if dist.get_rank() == 0:
        for number, kind in re.findall(r"Rank (\\d+) is running.*?OpType=(\\w+)", str(error)):
            print(f"rank {number} is running {kind}")
"""

launch(TWO_ORDERS, TORCH_DISTRIBUTED_DEBUG="DETAIL")

# %% [markdown]
# The third is the *flight recorder*: PyTorch keeps the last collectives of each rank in memory, with the lines
# that called them. Here is patient 6 again. The ranks other than 0 reach their end and close their
# connections, so rank 0 gets an error, and does not wait forever. Then each rank prints its record. (From
# inside a program that takes a private function, `_dump_fr_trace`. The public tools, below, read files.)

# %%
ONE_CALL_TOO_MANY = """
import pickle

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

dist.init_process_group("gloo")
rank = dist.get_rank()


def norm_of(weights):
    total = weights.square().sum()
    dist.all_reduce(total)
    return total.sqrt().item()


try:
    for step in range(3):
        loss = torch.tensor(1.0 + rank)
        dist.all_reduce(loss)
        if rank == 0 and step == 0:
            norm_of(torch.ones(3))
except RuntimeError:
    pass  # rank 0 is left alone

calls = []
for entry in pickle.loads(_dump_fr_trace())["entries"]:
    line = next(frame["line"] for frame in entry["frames"] if frame["filename"] == __file__)
    calls.append(f"{entry['profiling_name']} (line {line})")
print(f"rank {rank}:", ", ".join(calls))
dist.destroy_process_group()
"""

launch(ONE_CALL_TOO_MANY, TORCH_FR_BUFFER_SIZE="100")

# %% [markdown]
# Side by side, the records show the first call that differs: rank 0's second comes from line 14. With
# NCCL you need not print anything: set `TORCH_NCCL_DUMP_ON_TIMEOUT=1` and the number of entries to keep,
# `TORCH_FR_BUFFER_SIZE`, and every rank writes its record to a
# [file](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html) when a collective
# takes too long. Nor need you compare by eye: the command `torchfrtrace`, which comes with PyTorch, reads
# the files of all ranks, and says where they differ and which ranks are missing. While the job still
# hangs, the experimental debug server, `torch.distributed.debug.start_debug_server()`, shows the records
# and the Python stacks of all ranks in a browser; PyTorch has
# [a tutorial](https://docs.pytorch.org/tutorials/intermediate/debug_hangs_with_flight_recorder.html) on
# both, with its newer library TorchComms. And NCCL itself will talk if you set
# [`NCCL_DEBUG=INFO`](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug): it
# says which devices and links it uses, and what goes wrong.
#
# ## Summary
#
# - Draw which rank waits for which. If each waits for one other, the stuck ranks are those on a cycle, those
#   whose arrows lead into one, and those that wait for a rank that is gone.
# - AND waits (collectives) need all, OR waits (receives from any rank) need one.
# - Collectives are matched by order: all ranks of a group make the same calls in the same order, and none
#   is in a branch that only some of them take, however deep it is hidden.
# - The call that hangs is often innocent: look for the first call that differs.
# - Use several groups in one order everywhere, and wait for the handle that you mean.
# - The rank that complains first is the fastest, and seldom the culprit.
# - A ring has no central bottleneck, and any of its ranks can stop all the others.
#
# If a training job stops nearly eight times a day, much depends on how fast the cause is found. The team of
# Llama 3 [used PyTorch's flight recorder](https://arxiv.org/abs/2407.21783) to diagnose its hangs: it is
# the kind of record that you compared for patient 6. If you can read the graph, you can find the line in
# minutes.
#
# ### Check yourself
#
# <details><summary>Rank 0 waits for 1, rank 1 for 2, rank 2 for 1, and rank 3 runs. Which are stuck?</summary>
#
# 0, 1 and 2. Ranks 1 and 2 are a cycle, and rank 0 waits for it.
# </details>
#
# <details><summary>A training loop makes an all-reduce per batch. Rank 5 has one batch fewer than the others. What happens at the end of the epoch?</summary>
#
# The others wait in an all-reduce that rank 5 never calls. If rank 5 goes on to another collective,
# such as one of the evaluation, the two are matched with each other, which is worse.
# </details>
#
# <details><summary>Why can a cycle be harmless when one of its ranks receives from any rank?</summary>
#
# Its wait is an OR: a message from a rank outside the cycle is enough to set it free, and after it all
# the ranks that wait for it.
# </details>
#
# **Next:** [13 · Cost models](13_cost_models.ipynb): how long a collective takes, on paper.
