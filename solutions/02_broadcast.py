# %% [markdown]
# # 02 · Broadcast
#
# In data-parallel training every GPU has a copy of the model, works on its own samples, and averages
# its gradients with the others. That only makes sense if all copies are the same. But each process
# draws its own random starting weights (unless all have the same seed), and a checkpoint is often read
# from disk by one process only. So before the first step, one rank has to hand its weights to all the
# others.
#
# **You will learn** to give every rank what one rank has, to count what that costs, and why a tree
# beats a loop.
#
# **You need** chapter [01](01_point_to_point.ipynb): `send`, `recv`, requests, rounds.
#
# **Time:** 70 minutes, with 3 exercises.

# %%
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# One rank, the **source**, has a tensor. After the broadcast every rank has it.
#
# ![Before: four ranks hold A, B, C and D; only B is sent. After a broadcast from rank 1 all four hold B. Rank 1's own B was there already](../imgs/broadcast.png)
#
# A dashed frame marks what does not travel: on the left, what is not sent; on the right, what did not
# arrive in a message. The source can be *any* rank; in the picture it is rank 1.
#
# PyTorch has it built in. Every rank of the group makes the same call, and names the same source. Here
# rank 0 holds 1 to 5, and the others hold zeros:

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
# The call looks the same on all ranks, but it does not do the same thing. On rank 0 it only reads `x`; on
# the others it overwrites `x`, which has to exist *before* the call, with the right size and dtype.
# What they held is gone:

# %%
def each_has_its_own():
    x = torch.full((2,), dist.get_rank() + 1)
    before = x.tolist()
    dist.broadcast(x, src=0)
    print(before, "before,", x.tolist(), "after")


run(each_has_its_own, 4)

# %% [markdown]
# **Predict:** the next cell runs on three ranks, and rank 2 never calls `dist.broadcast`. What happens to
# rank 0, the source?
#
# <details><summary>It serves rank 1, and goes on without rank 2</summary>
#
# No: it also has a copy for rank 2, and no receive takes it.
# </details>
#
# <details><summary>It waits</summary>
#
# Yes: a collective is for the whole group, and it cannot know that rank 2 never calls it.
# </details>
#
# <details><summary>It is told at once that rank 2 is missing</summary>
#
# No: plain gloo cannot tell a rank that is late from one that never arrives. (The grader can.)
# </details>

# %%
def one_leaves_it_out():
    x = torch.ones(2)
    if dist.get_rank() != 2:
        dist.broadcast(x, src=0)


run(one_leaves_it_out, 3, may_fail=True)

# %% [markdown]
# Here both ranks wait for rank 2. (Plain gloo lets rank 1 go once it has its tensor, and the mistake shows
# later. The grader holds both.) A collective has to be called by **every rank** of the group. And all have to
# agree on what they call. Here two ranks name rank 0 as the source, and one names rank 1:

# %%
def two_sources():
    x = torch.ones(2)
    dist.broadcast(x, src=0 if dist.get_rank() < 2 else 1)


run(two_sources, 3, may_fail=True)

# %% [markdown]
# ## How many messages does it take?
#
# None of the other $n-1$ ranks has the data, and a message brings it to just one of them. So with
# point-to-point messages **at least $n-1$** are needed. If $x$ has $S$ bytes, at least $(n-1)\,S$
# bytes are sent in all.
#
# The simplest broadcast that reaches this bound is a loop on the source. Before you write it, answer
# for yourself: how often does the source call `send`, and how often does each of the others call
# `recv`? What does the source do when the loop comes to its own number?
#
# ## Exercise: broadcast
#
# Write it with point-to-point calls. It works **in place**: `x` itself holds the result on every
# rank, and nothing is returned. Calling `dist.broadcast` would be too easy, and is refused. (And
# `hint("broadcast")` helps if you are stuck.)

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
# The table in a passing verdict is for a model network, which this chapter describes below. *Bytes per
# rank* are those that the busiest rank sends. The last line is the least for each column *by itself*.
#
# One trap is waiting in every exercise that works in place. Both functions below are given a tensor
# with a 0 and want to put a 7 into it.
#
# **Predict:** what does the caller see?
#
# <details><summary>A 7 from both</summary>
#
# No: <code>rename</code> makes another tensor, and the caller still has the first one.
# </details>
#
# <details><summary>A 0 from <code>rename</code>, a 7 from <code>write_into</code></summary>
#
# Yes: only <code>write_into</code> changes the tensor that the caller has.
# </details>
#
# <details><summary>A 7 from <code>rename</code>, a 0 from <code>write_into</code></summary>
#
# No: <code>x = </code> makes the <em>name</em> refer to another tensor, and only inside the function.
# </details>

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
# `x = something` makes the *name* `x` refer to another tensor, inside the function only. The caller's
# tensor does not change. To write into it, use `dist.recv(x, ...)`, `x.copy_(y)` or `x[:] = y`.
#
# ## A loop takes n − 1 rounds. A tree takes fewer
#
# In the loop, the source sends one message after the other, and the other ranks are idle once they
# have received theirs. But a rank that *has* the data can help to spread it.
#
# ![Two broadcasts to eight ranks. Flat: rank 0 sends to one rank in each of 7 rounds. Binomial tree: 1, then 2, then 4 ranks send, and 3 rounds are enough](../imgs/broadcast_rounds.png)
#
# In the tree, the number of ranks that have the data doubles in every round: 1, 2, 4, 8. So
# $\lceil \log_2 n \rceil$ rounds are enough, with the same $n-1$ messages. It is called a
# *binomial* tree. MPICH, a widely used MPI library, sends short messages in this way:
# [Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521).
#
# Here are both on four ranks, side by side, with rank 0 as the source. The tree is written out message by
# message. Both start at the same time, and *Play* starts them again.

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


replay(flat, 4, beside=tree_of_four)

# %% [markdown]
# The tree needs the same three messages, but two rounds instead of three: in the second round ranks 0
# and 1 send at the same time.
#
# ## Exercise: tree_broadcast
#
# Write the tree for **any** number of ranks and any source. It works in place, like `broadcast`, with
# $n-1$ messages, and takes exactly $\lceil \log_2 n \rceil$ rounds. The rounds are the point of
# this exercise: the loop gives the right result, and earns half.
#
# Three questions will get you there. In the picture, in which round does rank 5 receive, and from
# which rank? If there were 16 ranks, to which one would rank 5 send next? And what changes if the source is
# not rank 0? (You can start counting at any rank, if you wrap around at the end.) Mind the worlds
# whose size is not a power of two: with five ranks, only one message travels in the last round.

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
# Now let the loop and your own tree race, on eight ranks:

# %%
def your_tree(x):
    tree_broadcast(x, 0)


replay(flat, 8, beside=your_tree) if check(tree_broadcast) else None

# %% [markdown]
# Both send seven messages, but your tree is done after 3 rounds, and the loop after 7. For a world that
# your computer cannot hold, there is `simulate`, which runs the same function on simulated ranks and a
# virtual clock. If every message takes one second there, the seconds are the rounds:

# %%
if check(tree_broadcast):
    for ranks in (2, 3, 5, 8, 64, 1024):
        loop = simulate(flat, ranks, torch.ones(10), alpha=1, beta=0)
        tree = simulate(your_tree, ranks, torch.ones(10), alpha=1, beta=0)
        rounds = f"loop {loop.seconds:4.0f}, tree {tree.seconds:2.0f}"
        print(f"ranks {ranks:4}   messages {tree.messages:4}   rounds: {rounds}")

# %% [markdown]
# The difference shows on a real network. With 16 processes on Ethernet and 400,000 bytes,
# [mpitutorial.com](https://mpitutorial.com/tutorials/mpi-broadcast-and-collective-communication/) measured
# 0.51 seconds for a loop, and 0.13 for the broadcast of an MPI library, which it describes as a tree.
#
# ## Rounds are not seconds
#
# A round counts as one, whether it moves 4 bytes or 4 gigabytes. The simplest model that tells them
# apart has two numbers:
#
# $$\text{time of a message} = \alpha + \text{bytes} \cdot \beta$$
#
# Here $\alpha$ is the **latency**, which even an empty message takes, and $\beta$ the time that each
# byte adds, which is one over the **bandwidth**. You will meet them again and again, and in chapter
# [13](13_cost_models.ipynb) you measure them. The loop takes $(n-1)(\alpha + S\beta)$ and the
# tree $\lceil \log_2 n \rceil (\alpha + S\beta)$.
#
# And yet the tree is not always best. Take a **chain**: rank 0 sends to rank 1, rank 1 to rank 2, and so
# on, and cut $x$ into 100 pieces, so that a rank can pass on the first piece while the second one
# arrives. On 8 ranks that takes 106 rounds, and the tree takes 3. (Why 106? The last piece leaves rank 0
# in round 100, and has 6 more steps to go.)
#
# **Predict:** $\alpha$ is 10 µs, and a link carries 10 GB/s. Which one is faster for 400 bytes? For
# 100 MB?
#
# <details><summary>The tree, for both: 3 rounds against 106</summary>
#
# No: a round of the chain moves only a hundredth of the tensor.
# </details>
#
# <details><summary>The chain, for both: its messages are small</summary>
#
# No: small messages are not free. Each of them takes α, and the last one waits for 105 others.
# </details>
#
# <details><summary>The tree for 400 bytes, the chain for 100 MB</summary>
#
# Yes: for 400 bytes what counts is the number of rounds, and for 100 MB the bytes in each.
# </details>

# %%
def built_in_tree(x):
    dist.broadcast(x, src=0)  # on simulated ranks, a binomial tree


def chain_of_pieces(x):
    rank, n, requests = dist.get_rank(), dist.get_world_size(), []
    for piece in x.tensor_split(100):
        if rank > 0:
            dist.recv(piece, rank - 1)
        if rank < n - 1:
            requests.append(dist.isend(piece, rank + 1))
    for request in requests:
        request.wait()


for elements, text in ((100, "400 bytes"), (25_000_000, "100 MB")):
    for algorithm in (built_in_tree, chain_of_pieces):
        done = simulate(algorithm, 8, torch.ones(elements), alpha=10e-6, beta=1 / 10e9)
        print(f"{text:>9}  {algorithm.__name__:16}{done.seconds * 1e3:8.2f} ms")

# %% [markdown]
# At 400 bytes, latency is all that matters, and 3 latencies beat 106. At 100 MB the bytes matter: each of
# the 3 rounds of the tree takes 10 ms, and each of the 106 rounds of the chain little more than a
# hundredth of that:
#
# ![When each of eight ranks receives the 100 MB. In the tree rank 1 receives from 0 to 10 ms, ranks 2 and 3 from 10 to 20 ms, ranks 4 to 7 from 20 to 30 ms. In the chain all of them receive nearly at the same time, for 11 ms each, and rank 7 is done after 11.7 ms](../imgs/tree_and_chain.png)
#
# This is why libraries switch algorithms by message size. NCCL has
# [no tree for broadcasts](https://github.com/NVIDIA/nccl/issues/317): it passes pieces along
# [a chain](https://github.com/NVIDIA/nccl/blob/master/src/device/broadcast.h).
#
# ## Exercise: the same weights everywhere
#
# Back to where the chapter began: before data-parallel training starts, all ranks must hold the same
# model. Write `sync_parameters`: afterwards every **parameter** and every **buffer** of the module
# equals the one on `src`. Here the built-in `dist.broadcast` is allowed.
#
# A *buffer* is a tensor that belongs to the model but is not learned, such as the running mean of a
# batch norm, or an integer that counts batches. It has to arrive exactly, however large it is:

# %%
example = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
print("parameters:", [name for name, _ in example.named_parameters()])
print("buffers:   ", [name for name, _ in example.named_buffers()])

# %% [markdown]
# One thing to know about parameters: since autograd tracks them, it refuses to let you write into one
# directly.

# %%
weight = nn.Linear(2, 1).weight
try:
    weight.copy_(torch.zeros(1, 2))
except RuntimeError as error:
    print("refused:", error)
with torch.no_grad():
    weight.copy_(torch.zeros(1, 2))
    print("done:   ", weight.tolist())

# %% [markdown]
# `dist.broadcast` and `dist.recv` bypass autograd, so they work with and without `no_grad`. It is good
# style to use it all the same: it tells the reader that this write is not to be differentiated.

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
# Try it on a model. Every rank draws its own random weights; afterwards all agree.

# %%
def same_model_everywhere():
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(2, 1)
    before = model.weight.sum().item()
    sync_parameters(model, src=2)
    print(f"sum of weights {before:7.4f} before, {model.weight.sum().item():7.4f} after")


run(same_model_everywhere, 3) if check(sync_parameters) else None

# %% [markdown]
# This is what `torch.nn.parallel.DistributedDataParallel` does when you wrap a model in it: it
# [broadcasts the state of rank 0](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design).
#
# ## Summary
#
# - Broadcast: one rank has it; afterwards every rank has it.
# - A collective is called by every rank of the group, with the same source.
# - With point-to-point messages it takes at least $n-1$ of them, and $(n-1)\,S$ bytes in all.
# - A loop takes $n-1$ rounds, a binomial tree $\lceil \log_2 n \rceil$.
# - A message takes $\alpha + \text{bytes} \cdot \beta$. Rounds decide for small tensors, bytes for large
#   ones.
# - *In place* means: the caller's own tensor holds the result.
#
# So one broadcast per tensor gives all copies of the model the same start. A checkpoint that one rank has
# read is handed out in the same way (in PyTorch, with
# [`broadcast_from_rank0`](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html#torch.distributed.checkpoint.state_dict.StateDictOptions)),
# and so are settings from a file. But a broadcast brings *everything* to every rank. Of a data set, each
# rank should get only its own part.
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
