# %% [markdown]
# # 04 · Reduce
#
# **You will learn** to combine the tensors of all ranks into one, which operations can be combined
# in this way, how the order changes the last digits, and what *not* to read afterwards.
#
# **You need** chapter [03](03_scatter_gather.ipynb).
#
# **Time:** 75 minutes, and 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, run

# %% [markdown]
# ## What it does
#
# A **reduce** is a gather that adds up as it goes. Every rank has a tensor of the same shape; one
# rank, the destination, ends with their sum, element by element.
#
# ![Before: four ranks hold A, B, C, D. After a reduce to rank 1, rank 1 holds A+B+C+D and the others what they had](../imgs/reduce.png)
#
# **Predict:** three ranks hold five ones, five twos and five threes. What does rank 0 hold after a
# reduce to rank 0?

# %%
def built_in_reduce():
    x = torch.full((5,), float(dist.get_rank() + 1))
    dist.reduce(x, dst=0, op=dist.ReduceOp.SUM)
    return x.tolist() if dist.get_rank() == 0 else "not ours to read"


print(list(run(built_in_reduce, 3)))

# %% [markdown]
# ### Why "not ours to read"?
#
# Many texts say that `dist.reduce` leaves the tensors of the other ranks alone. The
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.reduce)
# promises only that *the destination* receives the result. See for yourself whether ranks 1 and 2
# still have what they had:

# %%
def what_is_left():
    x = torch.full((5,), float(dist.get_rank() + 1))
    before = x.clone()
    dist.reduce(x, dst=0)
    return torch.equal(x, before)


unchanged = run(what_is_left, 3)
print("rank 1 unchanged:", unchanged[1])
print("rank 2 unchanged:", unchanged[2])

# %% [markdown]
# gloo uses the tensors of the other ranks as scratch space for partial sums. So after `dist.reduce`,
# never read `x` on a rank that is not the destination. (Yours will be better: the exercise asks
# for a reduce that leaves them alone.)
#
# ## What can be reduced
#
# Five operations have names in `dist.ReduceOp`:
#
# | op | result | for integers? |
# |---|---|---|
# | `SUM` | $x_0 + x_1 + \dots + x_{n-1}$ | yes |
# | `PRODUCT` | $x_0 \cdot x_1 \cdots x_{n-1}$ | yes |
# | `MIN`, `MAX` | the smallest, the largest | yes |
# | `AVG` | the sum divided by $n$ | no: an average of integers is no integer |
#
# gloo's own collectives know SUM, PRODUCT, MIN and MAX on every number type. AVG is built in for
# NCCL; for gloo it depends on the version of PyTorch. That need not trouble us: an average is a sum
# and one division.
#
# **Predict:** in what order should you add and divide? Watch what happens if you divide too often.

# %%
values = [4.0, 8.0, 12.0]

right = sum(values) / len(values)

wrong = values[0]
for value in values[1:]:
    wrong = (wrong + value) / len(values)  # divides early terms again and again

print("add everything, divide once:", right)
print("divide after every step:    ", round(wrong, 3))

# %% [markdown]
# ## Any order will do — nearly
#
# A reduce may add in any order, because addition is *associative*: $(a+b)+c = a+(b+c)$. That is
# what allows trees and rings. For the numbers in a computer it is not quite true:

# %%
a, b, c = torch.tensor(1e8), torch.tensor(-1e8), torch.tensor(1.0)
print("(a + b) + c =", ((a + b) + c).item())
print("a + (b + c) =", (a + (b + c)).item())

# %% [markdown]
# In float32 there is no number between 100 000 000 and 100 000 008, so adding 1 to $-10^8$ changes
# nothing. Two algorithms that add in different orders may therefore differ in the last digits, and
# neither is wrong. `check` knows how large such errors can be for each dtype and number of ranks,
# and allows that and no more. For integers it allows nothing.
#
# ## What it costs
#
# Each of the other $n-1$ ranks has something that the result depends on, so each has to send at
# least once: **$n-1$ messages** are needed. With a gather, the destination would also need room for
# $n$ tensors. A reduce can do with one extra buffer: receive, add, receive the next.
#
# ```
# if I am the destination:
#     for every other rank: receive its tensor into a buffer, combine the buffer into x
# else:
#     send x to the destination
# ```
#
# ## Exercise: reduce
#
# Write it for all five operations. The result is in place, in `x` on `dst`; on every other rank `x`
# must be **unchanged**, bit for bit. AVG is asked for on floating-point numbers only.
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
# Yours beside the built-in one, on the other ranks too:

# %%
def mine_and_theirs():
    mine = torch.full((2,), float(dist.get_rank() + 1))
    theirs = mine.clone()
    reduce(mine, 0, dist.ReduceOp.SUM)
    dist.reduce(theirs, 0)
    return mine.tolist(), theirs.tolist() if dist.get_rank() == 0 else "?"


if check(reduce):
    for rank, (mine, theirs) in enumerate(run(mine_and_theirs, 4)):
        print(f"rank {rank}: mine {mine}, built-in {theirs}")

# %% [markdown]
# ## A bottleneck
#
# Count who does what in the simple reduce: the destination receives $n-1$ tensors, one after the
# other, while everybody else sends a single one and is done. The more ranks, the longer the queue.

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
    print(f"{n} ranks: {run(flat_reduce, n, torch.ones(10)).trace.traffic.rounds} rounds")

# %% [markdown]
# As with the broadcast, a tree needs fewer rounds. Turn a broadcast's tree round, and what was sent last
# is received first: half of the ranks hand over what they have and are done, then half of the rest, until
# only the destination is left. Ranks in the middle of the tree combine what comes with what they have,
# and pass on the partial result.
#
# ![Eight ranks. In round 1 ranks 1, 3, 5, 7 send to 0, 2, 4, 6; in round 2 ranks 2 and 6 send to 0 and 4; in round 3 rank 4 sends to rank 0, which then holds the sum of all](../imgs/reduce_tree.png)
#
# **Predict** with pencil: four ranks hold 1, 10, 100 and 1000. Which two numbers travel in the first
# round, and which one in the second?

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


for rank, (own, partial) in enumerate(run(powers, 4)):
    print(f"rank {rank}: x is still {own:4}, the partial sum is {partial}")

# %% [markdown]
# Notice `x.clone()`: rank 2 adds up a partial sum, and does so in a copy, because its `x` must not
# change. That is the work that gloo saves itself.
#
# ## Exercise: tree_reduce
#
# The same as `reduce`, with all five operations and for any destination, on a tree: $n-1$ messages in
# $\lceil \log_2 n \rceil$ rounds, for any number of ranks. The rounds are the point of this exercise, so
# the queue of before earns half. `x` must stay as it was everywhere but on `dst`.

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
            if op == dist.ReduceOp.MIN:
                total = torch.minimum(total, buffer)
            elif op == dist.ReduceOp.MAX:
                total = torch.maximum(total, buffer)
            elif op == dist.ReduceOp.PRODUCT:
                total = total * buffer
            else:
                total = total + buffer
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
        print(f"{n} ranks: {flat_rounds} rounds flat, {tree_rounds} rounds as a tree")

# %% [markdown]
# ## Summary
#
# - **Reduce**: everyone has an x, one rank ends with the sum (or average, minimum, maximum,
#   product).
# - It takes $n-1$ messages; flat $n-1$ rounds, as a tree $\lceil \log_2 n \rceil$.
# - Average: add everything, divide once.
# - Floating-point sums depend on the order, in the last digits.
# - After the built-in `dist.reduce`, only the destination's tensor means anything.
#
# **Where this is used:** a loss or a metric averaged for one log line; gradients summed on one
# device by a parameter server. When *everybody* needs the result, it is an all-reduce, and that is
# where this course is heading.
#
# ### Check yourself
#
# <details><summary>Ranks 0 to 3 hold [1, 1], [2, 2], [3, 3], [4, 4]. What are SUM and AVG?</summary>
#
# [10, 10] and [2.5, 2.5].
# </details>
#
# <details><summary>Can a reduce do with fewer than n − 1 messages?</summary>
#
# No. The result depends on every rank's tensor, so each of the others must send at least once.
# </details>
#
# <details><summary>Two correct programs give 0.30000001 and 0.3. Which one is wrong?</summary>
#
# Neither need be. They may have added in different orders.
# </details>
#
# **Next:** [05 · All-gather](05_all_gather.ipynb): every rank ends with every piece.
