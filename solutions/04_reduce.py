# %% [markdown]
# # 04 · Reduce
#
# Every rank has computed a loss on its own samples, and the log wants their mean. A gather would bring all of
# them to one rank, which then adds them up. For one number per rank, that is fine. But the gradients of a
# model with a billion parameters are 4 GB in float32, and 64 ranks have one such set each: gathered, they
# would fill 256 GB on the rank that collects them, only to be added up. A **reduce** combines them on the
# way.
#
# **You will learn** to combine the tensors of all ranks into one, which operations this works for,
# how much the order matters, and what *not* to read afterwards.
#
# **You need** chapter [03](03_scatter_gather.ipynb).
#
# **Time:** 65 minutes, with 2 exercises.

# %%
import math

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# Every rank has a tensor of the same shape. After the reduce one rank, the *destination*, has their sum,
# element by element.
#
# ![Before: four ranks hold A, B, C, D. After a reduce to rank 1, rank 1 holds A+B+C+D and the others what they had](../imgs/reduce.png)
#
# Three ranks hold five ones, five twos and five threes. What does rank 0 hold after a reduce to rank 0?

# %%
def built_in_reduce():
    x = torch.full((5,), float(dist.get_rank() + 1))
    dist.reduce(x, dst=0, op=dist.ReduceOp.SUM)
    return x


print("rank 0 holds", run(built_in_reduce, 3)[0].tolist())

# %% [markdown]
# And ranks 1 and 2? In the picture they still have what they had.
#
# **Predict:** what do they hold after the built-in reduce?
#
# <details><summary>What they had: five twos and five threes</summary>
#
# No: the picture shows what a reduce has to do. gloo also writes to the tensors of the other ranks.
# </details>
#
# <details><summary>Something else, such as partial sums</summary>
#
# Yes: gloo uses their tensors as scratch space.
# </details>
#
# <details><summary>The sum, like rank 0: five sixes</summary>
#
# No: a reduce brings the sum to the destination only.
# </details>

# %%
def stays_unchanged():
    x = torch.full((5,), float(dist.get_rank() + 1))
    before = x.clone()
    dist.reduce(x, dst=0)
    return torch.equal(x, before)


unchanged = run(stays_unchanged, 3)
print("rank 1 unchanged:", unchanged[1])
print("rank 2 unchanged:", unchanged[2])

# %% [markdown]
# gloo makes partial sums there. It may, since the
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.reduce) promises a
# result on the destination only. So after `dist.reduce`, never read `x` on another rank. (Yours will be
# kinder, as in the picture: the exercise asks for a reduce that leaves the others alone.)
#
# ## What can be reduced
#
# PyTorch lists the operations in `dist.ReduceOp`:

# %%
print(*dist.ReduceOp.RedOpType.__members__)

# %% [markdown]
# | op | result | in the exercises? |
# |---|---|---|
# | `SUM` | $x_0 + x_1 + \dots + x_{n-1}$ | yes |
# | `PRODUCT` | $x_0 \cdot x_1 \cdots x_{n-1}$ | yes |
# | `MIN`, `MAX` | the smallest, the largest | yes |
# | `AVG` | the sum divided by $n$ | for floating point: the average of integers is usually not an integer |
# | `BAND`, `BOR`, `BXOR` | bit by bit: and, or, exclusive or | no |
# | `PREMUL_SUM` | the sum, after each $x_r$ is multiplied by a factor | no |
#
# No backend supports every operation for every dtype; the
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.ReduceOp) says
# what NCCL leaves out. It also says that only NCCL has `AVG`, which is not true of every version. Here is
# what gloo supports in yours:

# %% tags=["nbval-ignore-output"]
def supported(dtype):
    names = []
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        try:
            dist.reduce(torch.ones(2, dtype=dtype), 0, getattr(dist.ReduceOp, name))
            names.append(name)
        except (RuntimeError, ValueError):
            pass
    return " ".join(names) or "none"


for dtype in (torch.float32, torch.int64, torch.int16, torch.complex64):
    print(f"{dtype}: {run(supported, 2, dtype)[0]}")

# %% [markdown]
# If your backend has no AVG, you can do without: an average is a sum and one division. *One*: here is what
# you get if you divide after every step.

# %%
values = [4.0, 8.0, 12.0]

right = sum(values) / len(values)

wrong = values[0]
for value in values[1:]:
    wrong = (wrong + value) / len(values)  # divides early terms again and again

print("add everything, divide once:", right)
print("divide after every step:    ", round(wrong, 3))

# %% [markdown]
# ## Any order will do, almost
#
# Two properties of addition let a reduce choose its own order. It is **associative**,
# $(a+b)+c = a+(b+c)$, so partial sums can be made anywhere and added up later. And it is
# **commutative**, $a+b = b+a$, so it does not matter whose tensor arrives first. The same holds for
# products, minima and maxima.
#
# On a computer, addition still commutes, but in floating point it is not quite associative:

# %%
a, b, c = torch.tensor(1e8), torch.tensor(-1e8), torch.tensor(1.0)
print("(a + b) + c =", ((a + b) + c).item())
print("a + (b + c) =", (a + (b + c)).item())

# %% [markdown]
# Between $2^{26}$ and $2^{27}$, float32 has only every eighth number, so adding 1 to $-10^8$ changes
# nothing. The two results are 1 and 0, and neither program is wrong. How far apart can two orders be? Add
# a thousand numbers forwards and backwards, once with all of them positive, and once with both signs:

# %%
def in_order(values):
    total = torch.tensor(0.0)
    for value in values:
        total = total + value
    return total.item()


generator = torch.Generator().manual_seed(4)
large = torch.rand(500, generator=generator) * 1000
small = torch.rand(500, generator=generator)
samples = {
    "all positive": torch.cat([large, small]),
    "both signs": torch.cat([large, small - large.flip(0)]),
}
for name, x in samples.items():
    forwards, backwards = in_order(x), in_order(x.flip(0))
    magnitude = math.fsum(x.abs().tolist())
    difference = abs(forwards - backwards)
    print(f"{name}: sum {forwards:.3f} or {backwards:.3f}, sum of |x| {magnitude:.3f}")
    print(f"    apart by {difference / forwards:.0e} of the sum,")
    print(f"    and by {difference / magnitude:.0e} of the sum of |x|")

# %% [markdown]
# Measured against the sum, the error can be as large as you like: it is large wherever the terms nearly
# cancel. Measured against the **sum of the absolute values** it stays small. A sum of $n$ numbers, in
# whatever order, is off by at most about
#
# $$(n-1)\,u \sum_r |x_r|$$
#
# where $u$ is half the distance from 1 to the next number, $6 \cdot 10^{-8}$ in float32 ([Higham
# 1993](https://doi.org/10.1137/0914050)). In bfloat16 $u$ is $4 \cdot 10^{-3}$, so on 256 ranks the bound
# is about as large as $\sum |x_r|$ itself. That is why gradients in bfloat16 are often summed in float32,
# as with FSDP's
# [`reduce_dtype`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html#torch.distributed.fsdp.MixedPrecisionPolicy).
# `check` uses a bound of this kind for each element, and allows no larger error. For integers it allows
# none.
#
# ## What it costs
#
# Each of the other $n-1$ ranks has something that the result depends on, so each has to send at
# least once: **$n-1$ messages** are needed. And how much memory? After a gather, the destination holds
# $n$ tensors. If it combines each tensor as it arrives, how many does it need room for, besides `x`?
#
# ## Exercise: reduce
#
# Write it with point-to-point calls, for SUM, AVG, MIN, MAX and PRODUCT. The result is in place, in `x` on
# `dst`; on every other rank `x` must be **unchanged**, bit for bit. AVG is required only for floating-point
# tensors.
#
# Compare `op` with `==`, as in `op == dist.ReduceOp.MAX`. Useful: `torch.minimum(a, b)` and
# `torch.maximum(a, b)`, and `x.copy_(...)` to write into `x`.

# %%
def reduce(x: torch.Tensor, dst: int, op: dist.ReduceOp) -> None:
    """On dst, x becomes the reduction of everyone's x; elsewhere it stays as it is."""
    ### BEGIN SOLUTION
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    n = dist.get_world_size()
    buffer = torch.empty_like(x)
    for src in range(n):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == dist.ReduceOp.MIN:
            torch.minimum(x, buffer, out=x)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(x, buffer, out=x)
        elif op == dist.ReduceOp.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == dist.ReduceOp.AVG:
        x /= n
    ### END SOLUTION


check(reduce)

# %% [markdown]
# Here is yours next to the built-in one, on every rank:

# %%
def mine_and_theirs():
    mine = torch.full((2,), float(dist.get_rank() + 1))
    theirs = mine.clone()
    reduce(mine, 0, dist.ReduceOp.SUM)
    dist.reduce(theirs, 0)
    return mine.tolist(), theirs.tolist() if dist.get_rank() == 0 else "?"


if check(reduce):
    for r, (mine, theirs) in enumerate(run(mine_and_theirs, 4)):
        print(f"rank {r}: mine {mine}, built-in {theirs}")

# %% [markdown]
# ## A bottleneck
#
# If the destination receives from every rank itself, it receives $n-1$ tensors, one after the other,
# while each of the others sends one and is done. The more ranks, the longer the queue.

# %%
def flat_reduce(x):
    buffer = torch.empty_like(x)
    if dist.get_rank() == 0:
        for src in range(1, dist.get_world_size()):
            dist.recv(buffer, src)
            x += buffer
    else:
        dist.send(x, 0)


for n in (2, 4, 8):
    print(f"{n} ranks, rounds: {run(flat_reduce, n, torch.ones(10)).trace.traffic.rounds}")

# %% [markdown]
# As with the broadcast, a tree needs fewer rounds: $\lceil \log_2 n \rceil (\alpha + S\beta)$ in place of
# $(n-1)(\alpha + S\beta)$. Half of the ranks hand over what they have and are done, then half of the
# rest, until only the destination is left. Ranks in the middle of the tree combine what arrives with what
# they have, and pass on the partial result.
#
# ![Eight ranks. In round 1 ranks 1, 3, 5, 7 send to 0, 2, 4, 6; in round 2 ranks 2 and 6 send to 0 and 4; in round 3 rank 4 sends to rank 0, which then holds the sum of all](../imgs/reduce_tree.png)
#
# You could also reverse the arrows of the broadcast in chapter [02](02_broadcast.ipynb), last round first:
# ranks 4 to 7 would send to 0 to 3, then 2 and 3 to 0 and 1, then 1 to 0. That is also a binomial tree, and
# takes as many rounds. This one pairs neighbours first, so every partial sum is over *consecutive* ranks, 0
# and 1, then 0 to 3, and only associativity is needed. MPI makes use of that: a user's own operation may be
# declared [not commutative](https://www.mpi-forum.org/docs/mpi-4.1/mpi41-report.pdf) (`MPI_Op_create`), and
# then it is evaluated in rank order.
#
# **Predict:** four ranks hold 1, 10, 100 and 1000. Which two numbers travel in the first round, and which
# one in the second?
#
# <details><summary>10 and 1000, then 1100</summary>
#
# Yes: rank 2 adds the 1000 to its own 100, and passes the sum on.
# </details>
#
# <details><summary>10 and 1000, then 100</summary>
#
# No: rank 2 sends in the second round, but first it adds what has arrived.
# </details>
#
# <details><summary>100 and 1000, then 1010</summary>
#
# No: that is the other tree, the broadcast's in reverse. This one pairs neighbours first.
# </details>

# %%
def tree_of_four(x):
    rank, partial, buffer = dist.get_rank(), x.clone(), torch.empty_like(x)
    if rank in (0, 2):
        dist.recv(buffer, rank + 1)
        partial += buffer
    else:
        dist.send(x, rank - 1)
    if rank == 2:
        dist.send(partial, 0)
    elif rank == 0:
        dist.recv(buffer, 2)
        partial += buffer
    return x.item(), partial.item()


def powers():
    return tree_of_four(torch.tensor([10 ** dist.get_rank()]))


for r, (own, partial) in enumerate(run(powers, 4)):
    print(f"rank {r}: x is still {own:4}, the partial sum is {partial}")

# %% [markdown]
# Notice `x.clone()`: rank 2 makes its partial sum in a copy, because its `x` must not change. gloo saves
# itself this copy, which is why it left something else in `x` above.
#
# ## Exercise: tree_reduce
#
# Do the same as `reduce`, with the same operations and for any destination, on a tree: $n-1$ messages in
# $\lceil \log_2 n \rceil$ rounds, for any number of ranks. The rounds are the point of this exercise, so
# a queue at the destination earns half. `x` must stay as it was on every rank but `dst`.
#
# You may take either of the two trees, or another one. Before you write: in the picture, messages go 1, 2
# and then 4 ranks to the left. In which round does rank 6 send, and how can you tell from its number?
#
# You have written the five operations out once, and that is enough. Here they are as a helper, which later
# chapters give you again.

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


# %%
def tree_reduce(x: torch.Tensor, dst: int, op: dist.ReduceOp) -> None:
    """On dst, x becomes the reduction of everyone's x, in ⌈log₂ n⌉ rounds."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n  # ranks counted from the destination
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(total, buffer, op)
        step *= 2
    x.copy_(total / n if op == dist.ReduceOp.AVG else total)
    ### END SOLUTION


check(tree_reduce)

# %%
def your_tree(x):
    tree_reduce(x, 0, dist.ReduceOp.SUM)


if check(tree_reduce):
    for n in (2, 4, 8):
        flat_rounds = run(flat_reduce, n, torch.ones(10)).trace.traffic.rounds
        tree_rounds = run(your_tree, n, torch.ones(10)).trace.traffic.rounds
        print(f"{n} ranks, rounds: {flat_rounds} flat, {tree_rounds} as a tree")

# %% [markdown]
# ## Summary
#
# - **Reduce**: every rank has an x; one rank ends with the sum (or average, minimum, maximum, product).
# - With point-to-point messages it takes $n-1$ of them; flat in $n-1$ rounds, as a tree in
#   $\lceil \log_2 n \rceil$.
# - Average: add everything, divide once.
# - Associativity allows partial results, commutativity any order of arrival. Floating-point sums depend
#   on the order, by an error that grows with $\sum |x|$, not with the sum itself.
# - After the built-in `dist.reduce`, only the destination's tensor means anything.
#
# So the mean loss needs one reduce and one division, and 64 sets of gradients can be added up in the memory
# of two. But training does not stop there: every rank needs the averaged gradients for its next step, not
# only one. When *every* rank is to have the result, it is an **all-reduce**, and that is where this course
# is heading.
#
# ### Check yourself
#
# <details><summary>Ranks 0 to 3 hold [1, 1], [2, 2], [3, 3], [4, 4]. What are SUM and AVG?</summary>
#
# [10, 10] and [2.5, 2.5].
# </details>
#
# <details><summary>Can a reduce manage with fewer than n − 1 messages?</summary>
#
# Not if messages go from one rank to another. The result depends on every rank's tensor, so each of the
# others must send at least once.
# </details>
#
# <details><summary>Two correct programs give 0.30000001 and 0.3. Which one is wrong?</summary>
#
# Neither need be. They may have added in different orders.
# </details>
#
# <details><summary>Two correct programs add the same float32 numbers and give 1 and 0. Can that be?</summary>
#
# Yes, if the numbers themselves are large and nearly cancel: the error scales with the sum of their
# absolute values.
# </details>
#
# **Next:** [05 · All-gather](05_all_gather.ipynb): every rank ends with every piece.
