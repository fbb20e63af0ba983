# %% [markdown]
# # 11 · Ring all-reduce
#
# A model of 7 billion parameters has 14 GB of gradients in bfloat16, and all ranks need their sum in
# every step. With the rooted all-reduce of chapter [07](07_all_reduce.ipynb) and 64 ranks, one rank
# would receive 882 GB and send as much again. In this chapter each rank sends less than 28 GB, however
# many ranks there are, and only to its neighbour.
#
# **You will learn** to sum the tensors of all ranks without a bottleneck. You follow the algorithm by
# hand, write its schedule, write it for real, and count what it costs and what it saves.
#
# **You need** chapters [05](05_all_gather.ipynb) to [07](07_all_reduce.ipynb) (all-gather,
# reduce-scatter, all-reduce), and `isend`, `recv` and
# `wait` from chapter [01](01_point_to_point.ipynb).
#
# **Time:** 2 hours, and 2 exercises. The second is the largest so far, and worth 3 points.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, replay, run, simulate

# %% [markdown]
# ## What is wrong with the simple one
#
# The simple all-reduce has a root: everybody sends its tensor to rank 0, which adds them up and
# sends the sum back.
#
# **Predict:** four ranks hold 840 numbers each. How many numbers does rank 0 send, and how many do
# the others?

# %%
predict("")

# %%
def rooted_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for other in range(1, n):
        dist.recv(came, other)
        x += came
    for other in range(1, n):
        dist.send(x, other)


def sent_by_rank(trace):
    """How many elements each rank sends."""
    sent = [0] * trace.world_size
    for message in trace.messages:
        sent[message.source] += message.count
    return sent


print("sent by rank 0, 1, 2, 3:", sent_by_rank(run(rooted_all_reduce, 4, torch.ones(840)).trace))

# %% [markdown]
# Rank 0 sends three times as much as anybody else, and receives three times as much. With 100 ranks
# it would be 99 times. While rank 0 works, the others stand and wait. All the links between the
# others are never used at all.
#
# A tree helps, but not enough: its root still sends whole tensors again and again while most of the
# others are idle.
#
# **The idea of the ring:** cut the tensor into $n$ chunks, and let every rank be the root of *one*
# chunk. Then all ranks have the same to do. And let messages go to the right neighbour only, so that
# no two messages ever want the same link.
#
# ## Three ranks, by hand
#
# Rank 0 holds a tensor A, rank 1 holds B, rank 2 holds C, each cut into three chunks:
#
# | | chunk 0 | chunk 1 | chunk 2 |
# |---|---|---|---|
# | rank 0 | A0 | A1 | A2 |
# | rank 1 | B0 | B1 | B2 |
# | rank 2 | C0 | C1 | C2 |
#
# In the end everybody should have A0+B0+C0, A1+B1+C1 and A2+B2+C2.
#
# It takes four steps. In each of them *every* rank sends one chunk to its right neighbour, and at
# the same moment receives one from its left neighbour. (Right of rank 2 is rank 0.)
#
# ![Three ranks with three chunks each, in five rows. Step 1: A2, B0 and C1 move one rank to the right and are added. Step 2: the sums of two move on, and rank r holds the whole sum of chunk r. Steps 3 and 4: the whole sums move to the right and replace what is there, until every rank has all three](../imgs/ring_three.png)
#
# Let the computer do the same with names instead of numbers. A chunk is a piece of text, and adding
# two chunks writes a `+` between them.

# %%
def step(held, chunk_of, put):
    """All at once: rank r sends chunk chunk_of(r) to the right, where put joins it with what is there."""
    n = len(held)
    moving = []
    for r in range(n):
        i = chunk_of(r) % n
        moving.append((i, held[r][i]))
        print(f"   rank {r} sends {held[r][i]}")
    for r in range(n):
        i, came = moving[r - 1]  # from the left; in Python, moving[-1] is the last
        held[r][i] = put(held[r][i], came)
    for r in range(n):
        print(f"       rank {r} has  ", "   ".join(f"{chunk:8}" for chunk in held[r]).rstrip())


def add(mine, came):
    return f"{mine}+{came}"


three = [[f"{letter}{i}" for i in range(3)] for letter in "ABC"]

# %% [markdown]
# **Predict** before you run it: in step 1 rank 0 sends A2, rank 1 sends B0, and rank 2 sends C1. What
# does each rank hold afterwards?

# %%
print("step 1")
step(three, lambda r: r - 1, add)

# %% [markdown]
# Every rank now has one chunk in which two ranks are summed. What should it send next? **The chunk
# that just came.** There is no point in sending any other: only this one is closer to a whole sum.
#
# **Predict:** which chunk is that on rank 0? And where will the first whole sum be?

# %%
print("step 2")
step(three, lambda r: r - 2, add)

# %% [markdown]
# Rank 0 has the whole sum of chunk 0, rank 1 of chunk 1, rank 2 of chunk 2. You have seen this
# result before: it is a **reduce-scatter**. (Descriptions of the ring often call this phase
# *scatter-reduce*; it has nothing to do with `torch.scatter_reduce` of the last chapter, which works
# inside one tensor.)
#
# The rest is an **all-gather** around the ring. Everybody sends its whole sum to the right, and then
# what came. One thing is different now.
#
# **Predict:** what would happen if we went on adding?

# %%
def replace(mine, came):
    return came


print("step 3")
step(three, lambda r: r, replace)
print("step 4")
step(three, lambda r: r - 1, replace)

# %% [markdown]
# What comes in the second phase is finished, so it **replaces** what is there. If it were added, the
# old part would be counted twice.
#
# Two phases of two steps, four steps in all, and no rank ever had more to do than another.
#
# ## Five ranks, another convention
#
# Other texts let rank $r$ begin with chunk $r$ instead of chunk $r-1$. Here is that with five ranks
# and chunks a to e. A name such as `a012` means: chunk a, with the parts of ranks 0, 1 and 2 in it,
# in the order in which they were added.
#
# **Predict:** rank 0 sends its part of a first, `a0`. On which rank is a complete after four steps?

# %%
def join(mine, came):
    return came + mine[1:]


five = [[f"{letter}{r}" for letter in "abcde"] for r in range(5)]
for s in range(1, 5):
    print("step", s)
    step(five, lambda r: r + 1 - s, join)

# %% [markdown]
# Chunk a started on rank 0, went through 1, 2 and 3, and is complete on rank **4**. Chunk b is
# complete on rank **0**. In general rank $r$ ends up owning chunk $r+1$. With three ranks we had it
# that rank $r$ owns chunk $r$.
#
# ![Five ranks and five chunks in nine small grids, one after each step. In the first five the number of ranks summed in one chunk of each rank grows from 1 to 5, along diagonals. In the last four the complete chunks spread until all 25 are complete](../imgs/ring_five.png)
#
# In the picture a row is a rank, and the number in a box says how many ranks are summed in it. The
# frame marks the chunk that has just come.
#
# Is one of the two conventions wrong? No. They are **one schedule with another offset**: in step
# $s$ of the first phase rank $r$ sends chunk $r - s + k$ and receives chunk $r - s - 1 + k$, all
# modulo $n$, with $k = 0$ for our three ranks and $k = 1$ for the five. Another $k$ only gives the
# chunks other names. The second phase begins with the chunk that is complete, $r + k$.
#
# Do not take our word for it: try every offset for every ring up to eight.

# %%
def ring_of_sets(n, k):
    """Which ranks are summed in each chunk of each rank, after each phase."""
    held = [[{r} for _ in range(n)] for r in range(n)]
    for s in range(1, n):
        moving = [held[r][(r - s + k) % n] for r in range(n)]
        for r in range(n):
            held[r][(r - s - 1 + k) % n] |= moving[r - 1]
    complete = [[i for i in range(n) if len(held[r][i]) == n] for r in range(n)]
    for s in range(1, n):
        moving = [held[r][(r - s + 1 + k) % n] for r in range(n)]
        for r in range(n):
            held[r][(r - s + k) % n] = moving[r - 1]
    return complete, all(len(chunk) == n for chunks in held for chunk in chunks)


for k in (0, 1):
    print(f"offset {k}, 5 ranks: complete after the first phase on rank 0, 1, …:", ring_of_sets(5, k)[0])

right = 0
for n in range(2, 9):
    for k in range(n):
        complete, everything = ring_of_sets(n, k)
        right += everything and complete == [[(r + k) % n] for r in range(n)]
print("rings of 2 to 8 ranks, every offset:", right, "of", sum(range(2, 9)), "are right")

# %% [markdown]
# When you read other people's code, look for the offset first. A very common mistake is to take the
# first phase from one text and the second from another; then the second phase hands out chunks that
# are not complete.
#
# From here on we use offset 0, so that **rank $r$ owns chunk $r$**, as `dist.reduce_scatter` has it.
#
# ## The general case
#
# For $n$ ranks, and each $s = 1, \dots, n-1$:
#
# | | sends chunk | receives chunk | and then |
# |---|---|---|---|
# | reduce-scatter, step $s$ | $(r - s) \bmod n$ | $(r - s - 1) \bmod n$ | combines |
# | all-gather, step $s$ | $(r - s + 1) \bmod n$ | $(r - s) \bmod n$ | replaces |
#
# Two things to see in it. First, what is received in one step is sent in the next, also from the
# first phase to the second. Second, in every step all $n$ chunks are on their way, each from another
# rank. No link ever has two messages, and none has nothing to do.
#
# **Predict:** five ranks; who sends chunk 0 in steps 1, 2, 3 and 4?

# %%
n = 5
for s in range(1, n):
    senders = [next(r for r in range(n) if (r - s) % n == chunk) for chunk in range(n)]
    print(f"step {s}: chunks 0 to 4 are sent by ranks", *senders)

# %% [markdown]
# Read a column from top to bottom, and you travel with a chunk: chunk 0 leaves rank 1, and collects
# a part on each of ranks 2, 3 and 4 before it comes home to rank 0. Read a row, and you see that
# every rank sends exactly one chunk.
#
# ## Exercise: the schedule
#
# Write the table as a function: the list of the $2(n-1)$ pairs (chunk to send, chunk to receive) of
# one rank, first those of the reduce-scatter, then those of the all-gather. Nothing is sent here. The
# function may be asked about any rank of any ring, so use its arguments, not `dist.get_rank()`.

# %%
def ring_schedule(rank: int, world_size: int) -> list[tuple[int, int]]:
    """(chunk to send, chunk to receive) in each of the 2(n - 1) steps."""
    ### BEGIN SOLUTION
    n = world_size
    scatter_reduce = [((rank - s) % n, (rank - s - 1) % n) for s in range(1, n)]
    all_gather = [((rank - s + 1) % n, (rank - s) % n) for s in range(1, n)]
    return scatter_reduce + all_gather
    ### END SOLUTION


check(ring_schedule)

# %% [markdown]
# Let your schedule drive a ring of sets. A chunk is complete when all ranks are in it.

# %%
def complete_chunks(n):
    """How many of the n × n chunks are complete after each step of your schedule."""
    plans = [ring_schedule(r, n) for r in range(n)]
    held = [[{r} for _ in range(n)] for r in range(n)]
    counts = []
    for t in range(2 * (n - 1)):
        moving = [held[r][plans[r][t][0]] for r in range(n)]
        for r in range(n):
            i = plans[r][t][1]
            held[r][i] = held[r][i] | moving[r - 1] if t < n - 1 else moving[r - 1]
        counts.append(sum(len(chunk) == n for chunks in held for chunk in chunks))
    return counts


if check(ring_schedule):
    print("rank 0 of 3:", ring_schedule(0, 3))
    for n in (2, 3, 4, 5, 8):
        print(f"{n} ranks, complete chunks after each step:", *complete_chunks(n))

# %% [markdown]
# Nothing is complete for a long time, then $n$ chunks at once, and from there $n$ more in each step.
#
# ## What it costs
#
# The tensor has $K$ elements, so a chunk has $K/n$. A rank sends one chunk in each of the $2(n-1)$
# steps, so it sends
#
# $$2(n-1) \cdot \frac{K}{n} \;=\; \frac{2(n-1)}{n} K \;<\; 2K$$
#
# elements, and receives as many; half of them in each phase. The remarkable thing is what is *not*
# in it: for many ranks the number hardly depends on $n$.
#
# **Predict:** $K = 840$. How much more does a rank send in a ring of 8 than in a ring of 4?

# %%
K = 840
for n in (2, 3, 4, 5, 8, 28, 840):
    phase = (n - 1) * K // n
    print(
        f"{n:3} ranks: {phase:3} in each phase, {2 * phase:4} in all = {2 * phase / K:.3f} K;"
        f"  a root would send {(n - 1) * K:6}"
    )

# %% [markdown]
# ### "Everything is sent once and received once, that is the 2"
#
# You will find this explanation of the factor 2 in many places. It is tempting, because the result
# is close to 2. But look at the table: with two ranks the factor is 1, with four it is 1.5, and it
# is never 2. And what a rank *receives* is not in it at all: it receives as much again, at the same
# time.
#
# The exact factor is $2(n-1)/n$. The 2 counts **two phases**, and in each of them a rank sends all
# of its chunks but one: $n-1$ out of $n$.
#
# Can one do with less? No: to add up $n$ tensors with point-to-point messages, one has to make some
# rank send at least $2(n-1)/n \cdot K$. The proof, and the ring as the algorithm that reaches the
# bound, are in
# [Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002).
#
# ## From the schedule to code
#
# The schedule says what to send. Five things stand between it and a program that works.
#
# ### 1. Everybody sends at the same time
#
# **Predict:** what happens to this step on three ranks?

# %%
predict("")

# %%
def everybody_sends_first():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, came = torch.ones(2), torch.empty(2)
    dist.send(mine, (rank + 1) % n)
    dist.recv(came, (rank - 1) % n)


run(everybody_sends_first, 3, may_fail=True)

# %% [markdown]
# A cycle of ranks, each waiting for the next. Chapter 01 had two ways out. Letting the even ranks
# send first and the odd ones receive first does not hang, but then half of the links rest all the
# time:

# %%
def even_ranks_first():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, came = torch.ones(2), torch.empty(2)
    if rank % 2 == 0:
        dist.send(mine, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
    else:
        dist.recv(came, (rank - 1) % n)
        dist.send(mine, (rank + 1) % n)


def started_together():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, came = torch.ones(2), torch.empty(2)
    request = dist.isend(mine, (rank + 1) % n)
    dist.recv(came, (rank - 1) % n)
    request.wait()


for one_step in (even_ranks_first, started_together):
    print(f"rounds for one step on 4 ranks, {one_step.__name__}:", run(one_step, 4).trace.traffic.rounds)

# %% [markdown]
# `check` asks for one round a step.
#
# ### 2. A chunk that is on its way is not yours
#
# Until `request.wait()` returns, the chunk that `isend` sends must not be written to; and in the
# first phase, what comes needs a buffer of its own, because it has to be *combined* with what is
# there. Wait for both, the send and the receive, before the next step.
#
# ### 3. n chunks, for every length
#
# **Predict:** 9 elements, 4 ranks. Which of these gives every rank a chunk?

# %%
nine = torch.arange(9)
print("chunk(4):       ", [c.tolist() for c in nine.chunk(4)])
print("tensor_split(4):", [c.tolist() for c in nine.tensor_split(4)])
print("2 elements:     ", [c.tolist() for c in nine[:2].tensor_split(4)])

# %% [markdown]
# `chunk(4)` gives only three. `tensor_split(4)` always gives four; their sizes differ by at most one,
# and some may be empty. An empty chunk may be sent (it is a message of no elements) or left out, but
# sender and receiver have to agree about it.
#
# ### 4. Elements, not rows
#
# Cutting a matrix gives *rows*. Two rows cannot be shared out among four ranks:

# %%
matrix = torch.zeros(2, 12)
print("rows:    ", [c.numel() for c in matrix.tensor_split(4)], "elements in the chunks")
print("elements:", [c.numel() for c in matrix.view(-1).tensor_split(4)], "elements in the chunks")

chunk = matrix.view(-1).tensor_split(4)[1]
chunk += 7
print(matrix)

# %% [markdown]
# `x.view(-1)` is the same memory seen as one long row, and its chunks are views, too: what you write
# into a chunk, you write into `x`. That is how the result gets in place.
#
# ### 5. The same bits everywhere
#
# Sums of floating-point numbers depend on the order. If every rank collected all parts and added
# them up, beginning with its own, ranks would disagree:

# %%
def everybody_adds_in_its_own_order():
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.tensor(v) for v in (1e8, -1e8, 1.0)]
    total = parts[rank]
    for i in range(1, n):
        total = total + parts[(rank + i) % n]
    return total.item()


print("the same sum on three ranks:", list(run(everybody_adds_in_its_own_order, 3)))

# %% [markdown]
# If these were weights of a model, the three copies would drift apart, a little in every step of the
# training. The ring is safe from this: each chunk is summed **once**, by one chain of ranks, and all
# others *copy* the finished sum. `check` compares bits between ranks.
#
# ## Exercise: ring all-reduce
#
# Now write it. In place, for any length (0 elements, fewer than $n$, 7, 1000), any number of
# dimensions, and all five operations; AVG is asked for on floating-point numbers only. It has to
# give the same bits on every rank, talk to neighbours only, take $2(n-1)$ rounds, and send no more
# than $2(n-1)\lceil K/n \rceil$ elements from any rank.
#
# Either convention is right, and so is a ring that turns to the left. You may call your
# `ring_schedule`. As in chapter [04](04_reduce.ipynb), compare `op` with `==`.

# %%
def ring_all_reduce(x: torch.Tensor, op) -> None:
    """Everyone's x becomes the reduction of all x, around the ring."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    buffer = torch.empty_like(chunks[0])  # as long as the longest
    for step, (out, into) in enumerate(ring_schedule(rank, n)):
        mine, scattering = chunks[into], step < n - 1
        came = buffer[: len(mine)] if scattering else mine
        request = dist.isend(chunks[out], right)
        dist.recv(came, left)
        request.wait()
        if not scattering:
            continue  # a finished sum has replaced what was there
        if op == dist.ReduceOp.MIN:
            torch.minimum(mine, came, out=mine)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(mine, came, out=mine)
        elif op == dist.ReduceOp.PRODUCT:
            mine *= came
        else:
            mine += came
    if op == dist.ReduceOp.AVG:
        x /= n
    ### END SOLUTION


ring_works = check(ring_all_reduce)
ring_works

# %% [markdown]
# Yours beside the built-in one:

# %%
def mine_and_theirs():
    rank = dist.get_rank()
    mine = torch.full((5,), rank + 1.0)
    theirs = mine.clone()
    ring_all_reduce(mine, dist.ReduceOp.SUM)
    dist.all_reduce(theirs, op=dist.ReduceOp.SUM)
    return mine.tolist(), theirs.tolist()


if ring_works:
    for rank, (mine, theirs) in enumerate(run(mine_and_theirs, 3)):
        print(f"rank {rank}: mine {mine}, built-in {theirs}")

# %% [markdown]
# ### On hundreds of ranks
#
# Eight processes are many for a laptop, and a ring is made for hundreds of machines. `simulate` runs your
# unchanged function on as many ranks as you like, all in one process, on a virtual clock: here a message
# takes 1 µs, and each of its bytes 0.1 ns. `check` has done the same, on 64 and on 256 ranks (in its
# verdict they are called *simulated*).
#
# **Predict:** how many messages do 200 ranks send, and how long does it take them?

# %%
predict("")

# %%
def two_hundred_numbers():
    x = torch.full((200,), dist.get_rank() + 1.0)
    ring_all_reduce(x, dist.ReduceOp.SUM)
    return x[0].item()


if ring_works:
    simulated = simulate(two_hundred_numbers, 200)
    print(simulated)
    print("every rank has the sum of 1 to 200:", set(simulated) == {200 * 201 / 2})

# %% [markdown]
# $2 \cdot 199$ messages from each of 200 ranks; and $2 \cdot 199$ of them one after the other, which is what
# the time is made of. Chapter [13](13_cost_models.ipynb) has formulas for it, and simulates much more.
#
# ## Watch your own ring
#
# A run keeps a record of every message: in which round it travels, from whom to whom, how many
# elements, and where in the sender's memory they begin. From this we can print the table of steps,
# not of the theory, but of *your* program.
#
# **Predict:** three ranks, six numbers. Which elements does rank 0 send in round 1?

# %%
def step_table(trace):
    """Who sends which elements in which round."""
    rounds = {}
    for m in trace.messages:
        what = f"{m.taken_from}..{m.taken_from + m.count - 1}" if m.count else "nothing"
        rounds.setdefault(m.start, {})[m.source] = what
    print("         " + "".join(f"rank {r:<8}" for r in range(trace.world_size)).rstrip())
    for number, sends in sorted(rounds.items()):
        cells = "".join(f"{sends.get(r, '-'):13}" for r in range(trace.world_size))
        print(f"round {number + 1}  {cells.rstrip()}")


def three_ranks_six_numbers():
    x = torch.arange(6) + 10 * dist.get_rank()
    ring_all_reduce(x, dist.ReduceOp.SUM)
    return x.tolist()


if ring_works:
    observed = run(three_ranks_six_numbers, 3)
    step_table(observed.trace)
    print(observed)

# %% [markdown]
# With offset 0 you see the schedule: rank 0 begins with elements 4..5, its chunk 2 (our A2). With
# offset 1 it begins with 0..1, its chunk 0.
#
# The table says where in *a tensor's memory* the elements lie. If your program copies a chunk before
# it sends it, the copy is a tensor of its own that begins at 0, and you see `0..1` in every place. If
# it pads `x`, places are those in the padded tensor.
#
# And here is a world in which some chunks are larger than others, because 4 does not divide 10:

# %%
def four_ranks_ten_numbers():
    ring_all_reduce(torch.arange(10), dist.ReduceOp.MAX)


if ring_works:
    step_table(run(four_ranks_ten_numbers, 4).trace)

# %% [markdown]
# ### Step through it
#
# `replay` runs your function on data that can be followed by name, and shows every round of it. Use
# the buttons, the slider, or the arrow keys. Where your function goes another way than a recorded
# right run, that run stands beside it, and the first difference is marked.

# %%
if ring_works:
    shown = replay(ring_all_reduce, 4)
else:
    shown = None
shown

# %% [markdown]
# The names say what is *in* a cell: `A2+D2` has been added up from ranks 0 and 3. They are read off
# the numbers that your program really sent and summed; nothing is drawn by the book. If you add
# twice, you see `A0+A0`; if you mix up chunks, `A?+B?`.
#
# ## Ring against root
#
# ![Bars of what each of eight ranks sends, in units of the tensor's size. With a root, rank 0 sends 7 and each other rank 1. On the ring, every rank sends 1.75](../imgs/ring_cost.png)
#
# With eight ranks the root sends 7 whole tensors. On the ring everybody sends 1.75, and nobody sends
# more. In all, both send $2(n-1)$ times $K$ elements: the ring does not send *less*, it shares the
# work *evenly*.
#
# **Predict:** and the rounds? How many does each need on eight ranks?

# %%
def ring_sum(x):
    ring_all_reduce(x, dist.ReduceOp.SUM)


def compare(elements):
    for n in (2, 4, 8):
        for name, algorithm in (("root", rooted_all_reduce), ("ring", ring_sum)):
            trace = run(algorithm, n, torch.ones(elements)).trace
            sent, largest = sent_by_rank(trace), max(m.count for m in trace.messages)
            print(
                f"{n} ranks, {name}: {sum(sent):6} elements in all, {max(sent):5} by the busiest rank,"
                f" {trace.traffic.rounds:2} rounds of up to {largest}"
            )


if ring_works:
    compare(840)

# %% [markdown]
# The number of rounds is the same, $2(n-1)$! But a round of the root moves a whole tensor, and a
# round of the ring moves one chunk, $n$ times less. On eight ranks and with large tensors the ring
# takes about an eighth of the time.
#
# ## The price
#
# Each message also costs something that does not depend on its size: the **latency**, the time until
# the first byte arrives. The ring pays it $2(n-1)$ times, one after the other.
#
# "Rings are faster than trees" is therefore true only with a condition. Suppose that there is just
# one number to sum. Here is a tree: up to rank 0 and down again.

# %%
def tree_all_reduce(x):
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


def race(n, elements):
    for name, algorithm in (("tree", tree_all_reduce), ("ring", ring_sum)):
        trace = run(algorithm, n, torch.ones(elements)).trace
        rounds, largest = trace.traffic.rounds, max(m.count for m in trace.messages)
        print(f"   {name}: {rounds:2} rounds of up to {largest:3} elements: {rounds * largest}")


if ring_works:
    for elements in (840, 1):
        print(f"8 ranks, {elements} elements")
        race(8, elements)

# %% [markdown]
# With 840 elements the tree moves more than three times as many elements in a row as the ring. With
# one element there is nothing to cut; both send single numbers, and the tree needs 6 rounds instead
# of 14. So trees win for **small messages and many ranks**, rings for **large messages**. Libraries
# have both and choose; for NCCL see
# [NCCL_ALGO](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html). Chapter
# [13](13_cost_models.ipynb), on cost models, puts numbers on it.
#
# ### What is left: the links wait for the sums
#
# How does this ring do against `dist.all_reduce`, which does the same in C++? Look at one step. The
# link is busy while a chunk travels. Then it rests, until the chunk has been added. And before the
# next step both ends must be ready. A picture of time, for one rank:
#
# ```
# step by step    | chunk arrives        | add | chunk arrives        | add | ...
# in pieces       | p1 | p2   | p3   | p4   | p1 | p2 | ...
#                      | add1 | add2 | add3 | add4 | ...
# ```
#
# So cut each chunk into **pieces**, and let a piece travel on as soon as it has been added, while the
# next ones arrive. Few buffers are enough: one is being added while others are filled. This is called
# **pipelining**. It sends the same elements in more messages, so it is more than the exercise asks
# for; here it is, for SUM:

# %%
def pipelined_ring_sum(x, piece=2**19, window=3):
    """x becomes the sum over ranks; pieces of that many elements are added while others travel."""
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    count = max(1, -(-len(chunks[0]) // piece))  # rounded up
    pieces = [chunk.tensor_split(count) for chunk in chunks]
    incoming = [into for _, into in ring_schedule(rank, n)]
    to_add = [p for into in incoming[: n - 1] for p in pieces[into]]
    to_replace = [p for into in incoming[n - 1 :] for p in pieces[into]]
    buffers = [torch.empty_like(pieces[0][0]) for _ in range(window)]

    def receive(number):
        came = buffers[number % window][: len(to_add[number])]
        return came, dist.irecv(came, left)

    first = pieces[(rank - 1) % n] if n > 1 else ()
    sends = [dist.isend(p, right) for p in first]
    receives = [receive(number) for number in range(min(window, len(to_add)))]
    for number, mine in enumerate(to_add):
        came, request = receives[number]
        request.wait()
        mine += came
        sends.append(dist.isend(mine, right))
        if number + window < len(to_add):  # the buffer is free again
            receives.append(receive(number + window))
    for request in sends[:-count]:  # they sent what is replaced now; the last chunk stays
        request.wait()
    del sends[:-count]  # plain gloo would hang if they were waited for again
    # what comes now needs no buffer: all its receives can be posted at once
    replaced = [dist.irecv(p, left) for p in to_replace]
    for number, request in enumerate(replaced):
        request.wait()
        if number < len(replaced) - count:  # the last chunk has been all the way round
            sends.append(dist.isend(to_replace[number], right))
    for request in sends:
        request.wait()


def one_and_the_other():
    rank = dist.get_rank()
    step_by_step = torch.arange(10) * (rank + 1)
    in_pieces = step_by_step.clone()
    ring_sum(step_by_step)
    pipelined_ring_sum(in_pieces, piece=2)
    return torch.equal(step_by_step, in_pieces)


if ring_works:
    print("the same on every rank:", all(run(one_and_the_other, 3)))
    pieces = ("in pieces of a quarter", pipelined_ring_sum, 2**17)
    for name, algorithm, *size in (("step by step", ring_sum), pieces):
        trace = run(algorithm, 4, torch.ones(2**21), *size).trace
        print(f"{name}: {trace.traffic.messages} messages, {max(sent_by_rank(trace))} elements by one rank")

# %% [markdown]
# Measured on 2026-11-21 with torch 2.13 and gloo, four ranks on a machine with two processor cores,
# by the repository's `make bench`. The numbers are **bus bandwidth** (bytes per second times
# $2(n-1)/n$, as in [nccl-tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md))
# in GB/s, and in brackets the ratio to `dist.all_reduce`. All three ran in turn in the same
# processes. Up to 4 MiB the figures vary by a factor of two from one measurement to the next; from
# 16 MiB on by a fifth, and their ratios by a tenth.
#
# | size of x | `dist.all_reduce` | step by step | in pieces |
# |---:|---:|---:|---:|
# | 1 MiB | 0.18 | 0.07 (0.39) | 0.17 (0.98) |
# | 4 MiB | 0.42 | 0.25 (0.60) | 0.26 (0.62) |
# | 16 MiB | 0.86 | 0.66 (0.76) | 0.79 (0.92) |
# | 64 MiB | 0.84 | 0.63 (0.75) | 0.81 (0.96) |
# | 256 MiB | 0.87 | 0.76 (0.88) | 0.86 (0.99) |
#
# From 16 MiB on, Python in pieces is about as fast as gloo's C++. Two things differ from the version
# that goes step by step. A piece is added while the next ones arrive. And receives are **posted
# early**, so that a message never has to wait for its receive. At 1 MiB each chunk is one piece, so
# there only the second can have helped.
#
# Do not read more into the first two rows: their figures vary by a factor of two, and a third column
# that is better at 1 MiB than at 4 MiB cannot come from a fixed cost of each message. And on one machine
# there is no network: "sending" is copying, done by the same two cores that add. Where a link carries
# the data while the processor is free, overlap is worth more.
#
# ### No centre is not the same as no weak point
#
# The ring has no central **bottleneck**: no rank has more to do than another. That does not mean that it
# has no single point of failure. It has $n$ of them: if any one rank dies, its right neighbour waits
# for it, then the next one, and soon all of them. The next chapter shows it.
#
# ## Summary
#
# - The ring all-reduce is a **reduce-scatter** and an **all-gather**, $n-1$ steps each, with messages
#   to the right neighbour only.
# - Each rank sends on what just came. In the first phase it is combined, in the second it replaces.
# - Conventions differ in an offset: which chunk a rank begins with, and which it owns after the first
#   phase. Both phases must use the same.
# - A rank sends $2(n-1)/n \cdot K$ elements, less than $2K$ for any number of ranks. No algorithm can
#   do with less.
# - The work is shared evenly, and every link is busy in every step. The price is $2(n-1)$ latencies.
# - Each chunk is summed once and then copied, so all ranks get the same bits.
#
# **Where this is used:** averaging gradients in data-parallel training, in
# [NCCL](https://developer.nvidia.com/nccl) and
# [Gloo](https://github.com/facebookincubator/gloo/blob/main/docs/algorithms.md) and through them in
# `DistributedDataParallel`; an article from
# [Baidu](https://andrew.gibiansky.com/blog/machine-learning/baidu-allreduce/) brought the ring to deep
# learning, and [Horovod](https://arxiv.org/abs/1802.05799) into many people's programs. Its two halves
# are used on their own where weights are sharded.
#
# ### Check yourself
#
# <details><summary>Eight ranks, a tensor of 1 GB. How much does each rank send, and in messages of what size?</summary>
#
# 2 · 7/8 = 1.75 GB, in 14 messages of 125 MB.
# </details>
#
# <details><summary>A rank sends chunk r first and owns chunk r + 1 after the first phase. Which chunk does it send first in the second phase?</summary>
#
# Chunk r + 1: the one that is complete.
# </details>
#
# <details><summary>Why do all ranks get the same bits, although each of them adds floating-point numbers?</summary>
#
# Each chunk is summed by one chain of ranks in one order. The result is handed out as a copy, and
# it is not added again.
# </details>
#
# <details><summary>You double the number of ranks from 500 to 1000. What happens to the data that a rank sends, and to the number of steps?</summary>
#
# The data hardly changes (1.996 K becomes 1.998 K). The steps double, from 998 to 1998, and with them
# the latencies.
# </details>
#
# **Next:** [12 · Deadlock clinic](12_deadlock_clinic.ipynb): programs that hang, and why.
