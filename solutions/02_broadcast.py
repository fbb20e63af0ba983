# %% [markdown]
# # 02 · Broadcast
#
# **You will learn** to give everybody what one rank has, to count what that costs, and why a tree
# beats a loop.
#
# **You need** chapter [01](01_point_to_point.ipynb): `send`, `recv`, requests, rounds.
#
# **Time:** 60 minutes, and 3 exercises.

# %%
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, predict, run

# %% [markdown]
# ## What it does
#
# One rank, the **source**, has a tensor. After the broadcast everybody has it.
#
# ![Before: four ranks hold A, B, C and D. After a broadcast from rank 1 all four hold B. Rank 1's own B never moves](../imgs/broadcast.png)
#
# What is drawn dashed stays where it is. The source is *any* rank, not always rank 0; in the picture
# it is rank 1.
#
# PyTorch has it built in. Every rank of the group makes the same call, and names the same source:
#
# **Predict:** three ranks; rank 0 holds 1 to 5, the others zeros. What does each hold afterwards?
# Write it between the quotes. The next run shows it again, beside what happened.

# %%
predict("")

# %%
def built_in():
    if dist.get_rank() == 0:
        x = torch.tensor([1, 2, 3, 4, 5])
    else:
        x = torch.zeros(5, dtype=torch.int64)
    dist.broadcast(x, src=0)
    return x


run(built_in, 3)

# %% [markdown]
# The call looks the same on all ranks, but it does not do the same: on rank 0 it only sends, on
# the others it overwrites `x`. Whatever they had there is gone. `x` has to exist on every rank, with
# the right size and dtype, *before* the call.
#
# **Predict:** four ranks hold [1, 1], [2, 2], [3, 3] and [4, 4]. What does each hold after a broadcast
# from rank 0? (These four will come back with every collective.)

# %%
predict("")

# %%
def each_has_its_own():
    x = torch.full((2,), dist.get_rank() + 1)
    before = x.tolist()
    dist.broadcast(x, src=0)
    return before, x.tolist()


for rank, (before, after) in enumerate(run(each_has_its_own, 4)):
    print(f"rank {rank}: {before} before, {after} after")

# %% [markdown]
# A collective is called by **everyone** in the group. If one rank leaves it out, the others wait:

# %%
def one_leaves_it_out():
    x = torch.ones(2)
    if dist.get_rank() != 2:
        dist.broadcast(x, src=0)


run(one_leaves_it_out, 3, may_fail=True)

# %% [markdown]
# And all have to agree on what they call:

# %%
def two_sources():
    x = torch.ones(2)
    dist.broadcast(x, src=0 if dist.get_rank() < 2 else 1)


run(two_sources, 3, may_fail=True)

# %% [markdown]
# ## How many messages does it take?
#
# Think before you write. The other $n-1$ ranks do not have the data. Each message brings it to one
# of them. So **at least $n-1$ messages** are needed, and a good broadcast sends not one more. If $x$
# has $S$ bytes, then $(n-1)\,S$ bytes are sent in all.
#
# In the language of pseudocode, the simplest broadcast reads:
#
# ```
# if I am the source:
#     for every other rank: send x to it
# else:
#     receive x from the source
# ```
#
# ## Exercise: broadcast
#
# Write it with point-to-point calls. It works **in place**: `x` itself holds the result on every
# rank, and nothing is returned. Calling `dist.broadcast` would be too easy, and is refused.

# %%
def broadcast(x: torch.Tensor, src: int) -> None:
    """Everyone's x becomes src's x."""
    ### BEGIN SOLUTION
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
    ### END SOLUTION


check(broadcast)

# %% [markdown]
# A trap that many fall into once: `x = something` inside the function makes the *name* `x` mean
# another tensor. The tensor that the caller holds does not change. To write into it, use
# `dist.recv(x, ...)`, `x.copy_(y)` or `x[:] = y`.
#
# **Predict:** what does the caller see?

# %%
def rename(x):
    x = torch.tensor([7.0])


def write_into(x):
    x.copy_(torch.tensor([7.0]))


a, b = torch.zeros(1), torch.zeros(1)
rename(a)
write_into(b)
print("after rename:    ", a.item())
print("after write_into:", b.item())

# %% [markdown]
# ## A loop takes n − 1 rounds. A tree takes fewer
#
# In the loop, the source sends one message after the other, and everybody else stands idle after
# receiving. But a rank that *has* the data can help to spread it.
#
# ![Two broadcasts to eight ranks. Flat: rank 0 sends to one rank in each of 7 rounds. Binomial tree: 1, then 2, then 4 ranks send, and 3 rounds are enough](../imgs/broadcast_rounds.png)
#
# In the tree, the number of ranks that have the data doubles in every round: 1, 2, 4, 8. So
# $\lceil \log_2 n \rceil$ rounds are enough, with the same $n-1$ messages. (It is called a
# *binomial* tree. MPI libraries use it for short messages:
# [Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521), section 4.)
#
# Here are both on four ranks, with the source 0. The tree is written out message by message:

# %%
def flat(x):
    if dist.get_rank() == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)


def tree_of_four(x):
    rank = dist.get_rank()
    if rank == 0:
        dist.send(x, 1)
        dist.send(x, 2)
    elif rank == 1:
        dist.recv(x, 0)
        dist.send(x, 3)
    elif rank == 2:
        dist.recv(x, 0)
    elif rank == 3:
        dist.recv(x, 1)


for algorithm in (flat, tree_of_four):
    print(algorithm.__name__)
    print(run(algorithm, 4, torch.ones(10)).trace)

# %% [markdown]
# The same three messages, but two rounds instead of three: in the second round ranks 0 and 1 send at
# the same time.
#
# ## Exercise: tree_broadcast
#
# Write the tree for **any** number of ranks and any source. It works in place, like `broadcast`, with
# $n-1$ messages, and it takes exactly $\lceil \log_2 n \rceil$ rounds. The rounds are the point of
# this exercise: the loop of before, which is right, earns half.
#
# Three questions will get you there. In which round does rank 5 receive, and from whom? To whom does it
# send in the rounds after that? And what changes if the source is not rank 0? (Ranks can be counted from
# any rank, if you go round in a circle.) Mind the worlds that are not a power of two: with five ranks,
# only one message travels in the last round.

# %%
def tree_broadcast(x: torch.Tensor, src: int) -> None:
    """Everyone's x becomes src's x, in ⌈log₂ n⌉ rounds."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n  # ranks counted from the source
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, (v + step + src) % n)
        elif step <= v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2
    ### END SOLUTION


check(tree_broadcast)

# %% [markdown]
# Now count, for worlds of several sizes. **Predict:** how many rounds does each take on 5 ranks, and on
# 8?

# %%
predict("")

# %%
def your_tree(x):
    tree_broadcast(x, 0)


if check(tree_broadcast):
    for n in (2, 3, 4, 5, 8):
        counts = []
        for algorithm in (flat, your_tree):
            traffic = run(algorithm, n, torch.ones(10)).trace.traffic
            counts.append(
                f"{algorithm.__name__}: {traffic.messages} messages, {traffic.rounds} rounds"
            )
        print(f"{n} ranks   {counts[0]}   {counts[1]}")

# %% [markdown]
# The same number of messages, but on 8 ranks 3 rounds instead of 7. On 1024 ranks it would be 10
# instead of 1023.
#
# ## Exercise: the same weights everywhere
#
# Before data-parallel training starts, all ranks must hold the same model. Write
# `sync_parameters`: afterwards every **parameter** and every **buffer** of the module equals the
# one on `src`. Here the built-in `dist.broadcast` is allowed.
#
# A *buffer* is a tensor that belongs to the model but is not learned, such as the running mean of a
# batch norm. **Predict** how many tensors this model has:

# %%
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
print("parameters:", [name for name, _ in model.named_parameters()])
print("buffers:   ", [name for name, _ in model.named_buffers()])

# %% [markdown]
# Parameters require gradients, and autograd does not like it when somebody writes into them behind
# its back. `torch.no_grad()` says that you mean it.

# %%
def sync_parameters(module: nn.Module, src: int) -> None:
    """Every parameter and buffer becomes src's."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor, src)
    ### END SOLUTION


check(sync_parameters)

# %% [markdown]
# Try it on a model. Every rank makes its own random weights; afterwards all agree.

# %%
def same_model_everywhere():
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(2, 1)
    before = model.weight.sum().item()
    sync_parameters(model, src=2)
    return round(before, 4), round(model.weight.sum().item(), 4)


if check(sync_parameters):
    for rank, (before, after) in enumerate(run(same_model_everywhere, 3)):
        print(f"rank {rank}: sum of weights {before:7.4f} before, {after:7.4f} after")

# %% [markdown]
# This is what `torch.nn.parallel.DistributedDataParallel` does when you wrap a model in it: it
# [broadcasts the state of rank 0](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design).
#
# ## Summary
#
# - Broadcast: one rank has it, afterwards everyone has it.
# - A collective is called by every rank of the group, with the same source.
# - It needs $n-1$ messages and $(n-1)\,S$ bytes in all. Nobody can do with fewer.
# - A loop takes $n-1$ rounds, a binomial tree $\lceil \log_2 n \rceil$.
# - *In place* means: the tensor that the caller holds has the result.
#
# **Where this is used:** starting weights, loading a checkpoint on one rank and handing it out,
# settings that one rank has read from a file.
#
# ### Check yourself
#
# <details><summary>Rank 0 holds [1, 1], rank 1 [2, 2], rank 2 [3, 3], rank 3 [4, 4]. What do they hold after a broadcast from rank 2?</summary>
#
# [3, 3] on every rank. The other values are lost.
# </details>
#
# <details><summary>Why is it impossible to broadcast with fewer than n − 1 messages?</summary>
#
# Each of the n − 1 ranks without the data must receive at least one message.
# </details>
#
# <details><summary>With a tree on 1000 ranks, how many rounds?</summary>
#
# 10, because 2¹⁰ = 1024 is the first power of two that is at least 1000.
# </details>
#
# **Next:** [03 · Scatter and gather](03_scatter_gather.ipynb): different pieces for different ranks.
