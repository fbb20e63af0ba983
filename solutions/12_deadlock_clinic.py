# %% [markdown]
# # 12 · Deadlock clinic
#
# **You will learn** to read why a program hangs: who waits for whom, where the cycle is, and which
# line is really to blame. You will mend three programs that hang, and then write the heart of a
# deadlock detector yourself.
#
# **You need** chapters [01](01_point_to_point.ipynb) and [02](02_broadcast.ipynb), and what an
# all-reduce does: every rank ends with the sum of all.
#
# **Time:** 90 minutes, and 5 exercises.

# %%
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from grader import check, hint, predict, run, timeline

# %% [markdown]
# A program that crashes tells you a line. A program that hangs tells you nothing: all processes are
# there, none of them moves, and the graphics cards cost money by the minute.
#
# In this clinic every patient hangs. For each we do three things: run it, **read the verdict**, and
# mend it. `may_fail=True` lets `run` show what went wrong instead of stopping the notebook.
#
# ## Patient 1: a ring in which everybody sends first
#
# Every rank passes `x` to its right neighbour and returns what comes from the left.
#
# **Predict:** in chapter 01 *two* ranks that both send first waited for ever. Does it help that
# there are four, and that nobody sends to the one that it receives from?

# %%
predict("")

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
# Each part of the verdict says four things: **who** waits, in **which call**, **for whom**, and on
# which **line**. Write "rank 0 waits for rank 1" as an arrow from 0 to 1, and you have the
# **wait-for graph**: the picture in the verdict. It is there as data, too:

# %%
for wait in ring.failure.waits:
    print(f"rank {wait.rank} waits for {list(wait.peers)}")
print("the cycle:", list(ring.failure.cycle))

# %% [markdown]
# The arrows lead back to where they began. That is the whole disease: on a **cycle** every rank waits for
# one that waits, and no line of code that would help is ever reached.
#
# ![A graph of ranks. Ranks 1, 2 and 3 wait for each other in a cycle; ranks 0 and 4 wait for rank 1. These five are stuck. Rank 5 waits for rank 6, rank 6 for rank 7, which runs: these three can go on](../imgs/wait_for_graph.png)
#
# Look at ranks 0 and 4 in the picture. They are on no cycle, but they wait for one, so they are
# stuck as well. Ranks 5 and 6 wait too, and are in no danger: rank 7 runs.
#
# ## Exercise: mend the ring
#
# Write `unblock_ring`. It does the same work as `ring_that_hangs`, for any number of ranks, and
# cannot hang. One message from each rank; none when a rank is alone.

# %%
def unblock_ring(x: torch.Tensor) -> torch.Tensor:
    """The left neighbour's x."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
    ### END SOLUTION


check(unblock_ring)

# %% [markdown]
# There is more than one cure. **Predict** for each: does it hang with 5 ranks, and how many rounds
# does it take?
#
# - *one gives way*: rank 0 receives first, everybody else sends first;
# - *odd and even*: odd ranks receive first. With 5 ranks, ranks 4 and 0 are neighbours, and both are
#   even.

# %%
predict("")

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
# None of them hangs. A cycle is open as soon as **one** rank does otherwise, so two even
# neighbours do no harm. They cost a round: 3 and not 2. With `isend` on every rank it is a single
# round.
#
# ## Patient 2: two tags
#
# **Predict:** rank 0 sends, rank 1 receives. What can go wrong?

# %%
predict("")

# %%
def two_tags():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=7)
    else:
        dist.recv(x, 0, tag=8)


run(two_tags, 2, may_fail=True)

# %% [markdown]
# A cycle again, of two arrows, and a strange one: the send waits for a receive and the receive for a send. Both are
# there! But a message is matched by sender, receiver **and tag**, like a letter in a house with many
# letter boxes. The verdict says which tag the other side uses.
#
# ## Patient 3: one goes home early
#
# **Predict:** which ranks wait, and is there a cycle?

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
# No cycle: the arrows end at rank 2, and rank 2 **has returned**. It will post nothing more, so
# no rank that waits for it can ever go on. It thought that a zero adds nothing. The *value* adds
# nothing; the *call* was needed.
#
# ## Patient 4: one raises an exception
#
# The same from outside: three ranks wait in an all-reduce. **Predict:** what should the verdict name,
# those that wait or the one that does not?

# %%
def one_raises():
    x = torch.ones(1)
    if dist.get_rank() == 2:
        x = x.view(3)  # one element cannot become three
    dist.all_reduce(x)


run(one_raises, 4, may_fail=True)

# %% [markdown]
# The others did wait, but that is a *consequence*. A good verdict names the **cause**. In your own
# log files you will see both, usually with hundreds of consequences on top. Look for the one rank
# that says something else.
#
# ## Patient 5: a collective in a branch
#
# One rank writes the log, so only that rank needs the mean of the losses. Or so it seems.

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
# You will meet this patient again, and not always will the branch be so near: `if rank == 0:
# save(model)`, and somewhere inside of `save` there is a collective. The rule: **a branch that not
# all ranks take may hold no collective.**
#
# ## Exercise: mend the branch
#
# Write `unblock_branch`. It returns the mean of the losses on **every** rank, and `loss` itself must
# stay as it is. `loss` is a tensor with a single number and no dimension. `dist.all_reduce` is
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
# ## Patient 6: two orders
#
# Every rank makes both calls, but not all in the same order. **Predict:** rank 0's first call is an
# all-reduce, rank 1's a broadcast. Which of rank 1's calls does rank 0's all-reduce meet?

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
# Its first. Collectives have no names and no tags that you could give them; inside a group they are
# matched **by order alone**. The first call of one rank meets the first call of all others, and
# here these are two different things. That is an error even if it does not hang. With a plain
# backend it may hang, or crash, or take one's bytes for the other's.
#
# Real programs get here by looping over a `set` or over files in the order of a directory: the same
# elements on every rank, in another order.
#
# PyTorch can look for it too: with the environment variable `TORCH_DISTRIBUTED_DEBUG=DETAIL` every
# collective first checks that all ranks make the same call
# ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications)).
# That is slow, so it is for finding the mistake and not for every day.
#
# ## Exercise: mend the order
#
# Write `unblock_order`: it returns the maximum over ranks of `x`, plus rank 0's `x`. `x` stays as it
# is. `dist.all_reduce` and `dist.broadcast` are allowed.

# %%
def unblock_order(x: torch.Tensor) -> torch.Tensor:
    """MAX over ranks of x, plus rank 0's x."""
    ### BEGIN SOLUTION
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    return biggest + first
    ### END SOLUTION


check(unblock_order)

# %% [markdown]
# ## Patient 7: three groups
#
# Now a hard one. Three ranks, and a group for each pair of them. In each group both members make one
# call, an all-reduce, so *inside* a group there is no order that could be wrong.
#
# **Predict:** does it hang?

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
# It does. Rank 0 is in a call of the group (0, 1) and cannot come to (0, 2). Rank 1 is in (1, 2), rank 2
# in (0, 2). Each **holds** one thing and **waits** for another that a different rank holds.
#
# This is the oldest deadlock of all, known from locks and printers long before there were
# collectives. Coffman, Elphick and Shoshani wrote down in 1971
# ([System Deadlocks](https://doi.org/10.1145/356586.356588)) what it takes: things that are not
# shared, holding one while waiting for the next, nothing being taken away, and a **cycle**. Without
# any one of the four there is no deadlock.
#
# The usual cure takes the cycle away: give all things an order, and let every rank ask for them in
# that order.

# %%
print(run(three_groups, 3, True))

# %% [markdown]
# Large models use several groups at once, one for data, one for tensor and one for pipeline
# parallelism, so this happens in real training.
#
# ## AND and OR
#
# So far, a rank waited for one other. There are two more kinds of waiting:
#
# - a **collective** needs *all* the others: AND;
# - a **receive from anybody** needs *one* of the others: OR.
#
# ![Two graphs of four ranks; ranks 1 and 2 wait for each other. Left: rank 0 waits for any of 1, 2 and 3, and rank 3 runs, so rank 0 can go on. Right: ranks 0 and 3 wait for both 1 and 2, so all four are stuck](../imgs/and_or.png)
#
# In both pictures ranks 1 and 2 wait for each other. **Predict:** who is stuck on the left, who on
# the right?

# %%
def two_wait_for_each_other(others):
    rank, x = dist.get_rank(), torch.ones(1)
    if rank in (1, 2):
        dist.recv(x, 3 - rank)
    elif others == "AND":
        dist.all_reduce(x)
    elif rank == 0:
        dist.recv(x)  # from anybody
    else:
        dist.send(x, 0)


for others in ("OR", "AND"):
    failure = run(two_wait_for_each_other, 4, others, may_fail=True).failure
    print(others)
    for wait in failure.waits:
        print(f"   rank {wait.rank} waits for {list(wait.peers)}")

# %% [markdown]
# With OR, one live rank is enough, and a cycle alone proves nothing: rank 0 had an arrow to the
# cycle and left all the same. With AND a single stuck rank is enough to stop all of them.
#
# ## Exercise: who can never go on?
#
# Begin with the plain kind of waiting, where each rank waits for at most one other. This is a pure
# function; nothing is sent.
#
# `waits_for` maps a rank to the rank that it waits for. A rank that maps to `None` is running, and so
# is a rank that is no key. Return the ranks that can **never** go on, sorted, as a list: those on a
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
# Your function on the picture from the beginning, and on what the first patient really did:

# %%
if check(stuck_ranks):
    picture = {0: 1, 1: 2, 2: 3, 3: 1, 4: 1, 5: 6, 6: 7, 7: None}
    print("the picture:", stuck_ranks(picture))
    patient = {wait.rank: wait.peers[0] for wait in ring.failure.waits}
    print("patient 1:  ", stuck_ranks(patient))

# %% [markdown]
# ## Exercise: AND, OR, and ranks that are gone
#
# Now the whole detector, for every kind of waiting that you have met. A rank may wait for *any* or for
# *all* of several ranks, and some ranks have returned, as in patient 3: they are not stuck, but they will
# post nothing more, and a rank that needs them waits for ever.
#
# **Work this one out with pencil first.** Rank 4 runs, and rank 5 has returned.
#
# | rank | waits for |
# |---|---|
# | 0 | all of 1 and 2 |
# | 1 | any of 0 and 4 |
# | 2 | all of 1 |
# | 3 | any of 3 and 5 |
#
# Who can certainly go on? Who else, because of those? And if you cannot find any more, what do you know of
# the rest? Following arrows, as before, will not do here: ranks 0, 1 and 2 wait for each other, and yet
# none of them is stuck.
#
# `waits_for` maps a rank to `("any", ranks)` or `("all", ranks)`; a rank that maps to `None`, or is no
# key, is running. `gone` is the set of ranks that have returned. They are never listed, keys or not. A
# wait for any of *no* ranks never ends, and a wait for all of no ranks has ended already. Return the ranks
# that can never go on, sorted.

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
# Your detector on the table above, and on what patients 1 and 3 really did. In the verdict of a run,
# each wait says for whom it is, and whether one of them would do.

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
# This is what the grader does each time that a rank reports something, and why it needs no timeout: the
# ranks that are left over are stuck **for certain**, and at once. The idea is from the MPI checker MUST
# (Hilbrich and others,
# [MPI Runtime Error Detection with MUST: Advances in Deadlock Detection](https://doi.org/10.1109/SC.2012.79),
# 2012).
#
# ## Why a timeout names the wrong one
#
# Without a wait-for graph, people use a timeout: a rank that has waited for too long complains and
# stops. PyTorch's default is 10 minutes with NCCL and 30 minutes otherwise
# ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group)).
#
# ![A time line. Rank 0 begins first to wait for rank 1, rank 1 for rank 2, rank 2 for rank 3. Rank 3 is in an endless loop. The timeouts come in the order 0, 1, 2; rank 3 never complains](../imgs/who_complains_first.png)
#
# **Predict:** rank 3 is in an endless loop. Who complains first, and whom does it blame?

# %%
waits_for = {0: 1, 1: 2, 2: 3, 3: None}  # rank 3 is running: round and round
began = {0: 0.5, 1: 1.4, 2: 2.6}  # when each began to wait, in seconds
patience = 600

for rank in sorted(began, key=began.get):
    print(f"{began[rank] + patience:6.1f} s: rank {rank} complains about rank {waits_for[rank]}")

at = 0
while waits_for[at] is not None:
    at = waits_for[at]
print("at the end of the arrows:", at)

# %% [markdown]
# First complains the one that has waited longest, which is the **fastest** rank. It blames its
# neighbour, which is as innocent. The culprit itself never waits, and so never complains. Follow the
# arrows to their end before you blame anybody.
#
# A timeout is still needed for the one case that no graph can decide: a rank that *runs*, and may
# finish or may not. Here the call may take 2 seconds. The verdict names who is running, not the
# three who wait:

# %%
def one_takes_for_ever():
    if dist.get_rank() == 2:
        time.sleep(600)
    dist.all_reduce(torch.ones(1))


stopped = run(one_takes_for_ever, 4, seconds=2.0, may_fail=True)
stopped

# %% [markdown]
# `timeline` draws the same run in time. The hatched boxes are waits that did not end. Look for the
# lane without one: that rank has never begun to wait.

# %% tags=["nbval-ignore-output"]
timeline(stopped)

# %% [markdown]
# ## A claim to test: "a ring has no single point of failure"
#
# A ring seems safer than a rank in the middle: no rank is special, and there is no centre that could
# fail. **Predict:** five ranks pass tensors around the ring, and
# rank 2 is gone after the first step. How many of the others finish?

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


gone = run(ring_with_a_loss, 5, "goes home", may_fail=True)
gone

# %%
stuck = [wait.rank for wait in gone.failure.waits]
print("stuck:", stuck, "finished:", [r for r in range(5) if r not in stuck and r != 2])

# %% [markdown]
# None of them finishes. Rank 2's right neighbour misses its message, then that one's neighbour, all the
# way round; on the other side rank 1 cannot get rid of its own. And if the process is killed:

# %%
run(ring_with_a_loss, 5, "killed", may_fail=True)

# %% [markdown]
# So **every** rank of a ring is a single point of failure. What a ring does not have is a single
# *bottleneck*: no rank carries more traffic than the others. That is a statement about speed and not
# about safety. After a loss the job has to start again from a checkpoint, with a ring as with
# anything else; `torchrun` can
# [restart the ranks](https://docs.pytorch.org/docs/stable/elastic/run.html) for you.
#
# ## What to do when it hangs
#
# | what you see | what it often is | what to look at |
# |---|---|---|
# | a cycle of sends | everybody sends first | let one receive first, or `isend` |
# | a send and a receive that wait for each other | tags or groups differ | tag and group of both |
# | "the function has returned there" | early return, a loop of another length | the rank that has returned |
# | all wait but one | exception or endless loop on that one | the one that does not wait |
# | two different collectives | other order, a branch | the first call that differs |
# | a cycle across groups | groups used in different orders | one order for all |
#
# ### On a machine without this grader
#
# Ask each process where it is: [py-spy](https://github.com/benfred/py-spy) prints the Python stack of a
# running process. Write down the call of every rank, draw the arrows, and follow them.
#
# On gloo there is a barrier that says who is missing. The next cell launches four processes with
# `torchrun`, without the grader; rank 2 takes another branch.
#
# **Predict:** an ordinary barrier would wait for ever. What will this one say?

# %%
SCRIPT = """
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() != 2:  # rank 2 took another branch
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=2), wait_all_ranks=True)
    except RuntimeError as error:
        if dist.get_rank() == 0:
            print(error)
"""

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "who_is_missing.py")
    with open(path, "w") as file:
        file.write(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4"]
    done = subprocess.run([*torchrun, path], capture_output=True, text=True)
print(done.stdout, end="")

# %% [markdown]
# [`monitored_barrier`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.monitored_barrier)
# exists for gloo alone, and is slow, since every rank reports to rank 0. A program that trains with NCCL
# can make a second group on gloo for it.
#
# NCCL itself speaks if you set
# [`NCCL_DEBUG=INFO`](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug):
# which devices and links it uses, and what goes wrong. And PyTorch keeps the last collectives of each
# rank in memory, in its *flight recorder*: with
# [`TORCH_NCCL_TRACE_BUFFER_SIZE`](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html)
# above 0 it records, and with `TORCH_NCCL_DUMP_ON_TIMEOUT=1` it writes the record to a file when a
# collective takes too long. Laid side by side, the records show the call that one rank never made. Both
# need GPUs, so they are not run here.
#
# ## Summary
#
# - Draw who waits for whom. Stuck are the ranks on a cycle, those whose arrows lead into one, and
#   those that wait for a rank that is gone.
# - AND waits (collectives) need all, OR waits (receives from anybody) need one.
# - Collectives are matched by order: all ranks make the same calls in the same order, and none
#   stands in a branch that not all take.
# - Several groups: use them in one order everywhere.
# - The rank that complains first is the fastest, and seldom the culprit.
# - A ring has no central bottleneck, and every rank of it can stop all.
#
# **Where this is used:** every long training job hangs sooner or later. If you can read the graph, you can
# find the line in minutes.
#
# ### Check yourself
#
# <details><summary>Rank 0 waits for 1, rank 1 for 2, rank 2 for 1, rank 3 for none. Which are stuck?</summary>
#
# 0, 1 and 2. Ranks 1 and 2 are a cycle, and rank 0 waits for it.
# </details>
#
# <details><summary>A training loop makes an all-reduce per batch. Rank 5 has one batch less than the others. What happens at the end of the epoch?</summary>
#
# All others wait in an all-reduce that rank 5 never calls. If rank 5 goes on to another collective,
# such as a barrier or the evaluation's, the two are matched with each other, which is worse.
# </details>
#
# <details><summary>Why can a cycle be harmless when one of its ranks receives from anybody?</summary>
#
# Its wait is an OR: a message from a rank outside of the cycle is enough to set it free, and then
# everybody behind it.
# </details>
#
# **Next:** [13 · Cost models](13_cost_models.ipynb): how long a collective takes, on paper.
