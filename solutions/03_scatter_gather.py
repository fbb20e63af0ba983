# %% [markdown]
# # 03 · Scatter and gather
#
# One rank has read a batch of samples from disk, and eight ranks are to train on it, each on an eighth.
# A broadcast would do, but each rank would then receive eight times what it needs. And when the step is
# over, each rank has a loss of its own, while the log wants one line with all eight. Handing out parts and
# collecting them again are two collectives: **scatter** and **gather**.
#
# **You will learn** to hand out pieces of data, to collect them again, to split a tensor for $n$
# ranks without losing any of it, and what a rank does with its own piece.
#
# **You need** chapter [02](02_broadcast.ipynb).
#
# **Time:** 45 minutes, with 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Scatter: a piece for everyone
#
# After a broadcast every rank has the same tensor. In a **scatter** the source has a list of $n$ pieces,
# and rank $r$ gets piece $r$.
#
# ![Before: rank 1 holds the pieces x0, x1, x2, x3. After a scatter from rank 1, rank r holds piece xr. Piece x1 is rank 1's own and never travels](../imgs/scatter.png)
#
# Piece $x_1$ has a dashed frame: it is the source's own, and never travels.
#
# In PyTorch it looks like this. Rank 0 has five ones, five twos and five threes; what does each rank
# hold afterwards?

# %%
def built_in_scatter():
    out = torch.zeros(5)
    pieces = None
    if dist.get_rank() == 0:
        pieces = [torch.full((5,), value) for value in (1.0, 2.0, 3.0)]
    dist.scatter(out, pieces, src=0)
    return out


run(built_in_scatter, 3)

# %% [markdown]
# On the other ranks the list is `None`: they have no pieces, and must not look inside.
#
# ## The source keeps its own piece
#
# The shortest way to write a scatter treats the source like every other rank:
#
# ```
# if rank == src:
#     for each rank i: send pieces[i] to i
# recv out from src
# ```
#
# **Predict:** what will happen on 3 ranks?
#
# <details><summary>Every rank gets its piece</summary>
#
# No: the first message would go from the source to itself, and PyTorch refuses that.
# </details>
#
# <details><summary>Rank 0 waits for itself forever</summary>
#
# No: it would, if the message were let through. PyTorch refuses it before anything waits.
# </details>
#
# <details><summary>Rank 0 stops with an error</summary>
#
# Yes: its first message would go to itself, and PyTorch refuses that.
# </details>

# %%
def source_like_the_others():
    out = torch.zeros(5)
    if dist.get_rank() == 0:
        for i in range(dist.get_world_size()):
            dist.send(torch.full((5,), float(i + 1)), i)
    dist.recv(out, 0)
    return out


run(source_like_the_others, 3, may_fail=True)

# %% [markdown]
# A rank cannot send to itself here. `dist.send` refuses it on every backend; `dist.isend`
# [lets it through](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.isend), and
# leaves it to the backend. (gloo fails, because a rank has no connection to itself.)
#
# Even if `send` allowed it, it would not help here. A synchronous send waits for its receive, and
# that receive is on a line which the same rank has not reached: the source would wait for itself
# forever. It simply *copies* its own piece instead.
#
# ## What it costs
#
# $n-1$ ranks need one piece each: $n-1$ messages, and $(n-1)$ times the bytes of one piece in all. A
# broadcast of the whole list would also bring every rank its piece, but would send $n$ times as much.
#
# If the source sends all of them itself, and a piece has $s$ bytes, that takes
# $(n-1)(\alpha + s\beta)$. A tree whose messages hold what a whole subtree needs saves latencies, as in chapter
# [02](02_broadcast.ipynb), but no bytes: whatever the algorithm, $(n-1)\,s$ bytes have to leave the source.
# (When your answers pass, a table shows what a tree would take. It sends some pieces more than once.)
#
# ## Exercise: scatter
#
# Write it with point-to-point calls, and let each piece travel once, straight from `src` to its rank.
# `chunks` is the list of pieces: $n$ tensors of one size on `src`, and `None` elsewhere. `out` has the size of
# one piece on every rank and holds the result; nothing is returned. The caller's chunks must stay as they are.

# %%
def scatter(out: torch.Tensor, chunks: list[torch.Tensor] | None, src: int) -> None:
    """out becomes chunks[rank] of src."""
    ### BEGIN SOLUTION
    if dist.get_rank() == src:
        for dst, chunk in enumerate(chunks):
            if dst == src:
                out.copy_(chunk)
            else:
                dist.send(chunk, dst)
    else:
        dist.recv(out, src)
    ### END SOLUTION


check(scatter)

# %% [markdown]
# ## Gather: the way back
#
# A **gather** reverses the arrows. Every rank has a piece, and afterwards one rank, the
# *destination*, has the list of all of them in rank order.
#
# ![Before: rank r holds xr. After a gather to rank 1, rank 1 holds the list x0, x1, x2, x3; the others still have their own piece](../imgs/gather.png)
#
# The dashed frames on the right are what was there already: each rank's own piece.

# %%
def built_in_gather():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((5,), float(rank + 1))
    pieces = [torch.zeros(5) for _ in range(n)] if rank == 0 else None
    dist.gather(x, pieces, dst=0)
    return pieces


run(built_in_gather, 3)

# %% [markdown]
# The list is in **rank order**: entry $r$ is what rank $r$ sent. And a gather neither makes nor loses elements:
# three ranks had 5 each, and rank 0 has 15. (Counting on both sides is a quick test of any example, and of your
# own code.)
#
# Here is a gather that takes the messages as they arrive, and appends them to a list.
#
# **Predict:** four ranks run it, and rank $r$ has $10r$. What can the list on rank 0 be?
#
# <details><summary>0, 10, 20, 30, whatever arrives first</summary>
#
# No: nothing in the loop looks at the sender. It appends whatever arrives.
# </details>
#
# <details><summary>0, and then 10, 20, 30 in any order</summary>
#
# Yes: rank 0 puts its own number first, and appends the others as they arrive.
# </details>
#
# <details><summary>0, and then some of the others twice</summary>
#
# No: each receive takes a message of its own, and each rank has sent one.
# </details>

# %%
def gather_as_they_arrive():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([rank * 10])
    if rank != 0:
        dist.send(x, 0)
        return None
    found = [x]
    for _ in range(n - 1):
        y = torch.empty_like(x)
        dist.recv(y)  # from any rank
        found.append(y)
    return [int(y) for y in found]


run(gather_as_they_arrive, 4)[0]

# %% [markdown]
# Where several messages could be received, `run` takes the highest rank's; on a network it is the one that
# arrives first. To be right, receive from a *named* rank, or use what `recv` returns: the rank that the
# message came from.
#
# ## Exercise: gather
#
# Return the list in rank order on `dst`, and `None` on every other rank. Again each piece travels once.
# `dst`'s own entry is a **copy** of its `x`: if the caller changes `x` later, the list must not change with it.

# %%
def gather(x: torch.Tensor, dst: int) -> list[torch.Tensor] | None:
    """All x in rank order on dst; None elsewhere."""
    ### BEGIN SOLUTION
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return None
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    parts[dst].copy_(x)
    requests = [dist.irecv(part, src) for src, part in enumerate(parts) if src != dst]
    for request in requests:
        request.wait()
    return parts
    ### END SOLUTION


check(gather)

# %% [markdown]
# ## Where do the pieces come from?
#
# Before you can scatter a tensor you have to cut it. PyTorch has two functions that look alike. Each is
# asked to cut 9 numbers for 4 ranks: how many pieces does each give?

# %%
numbers = torch.arange(9)
print("chunk(4):       ", [piece.tolist() for piece in numbers.chunk(4)])
print("tensor_split(4):", [piece.tolist() for piece in numbers.tensor_split(4)])

# %% [markdown]
# `chunk` first fixes the size of a piece, $\lceil 9/4 \rceil = 3$, and then needs only **three** of
# them. The fourth rank gets nothing, not even an empty piece, and `chunks[3]` raises an
# `IndexError`. The [documentation](https://docs.pytorch.org/docs/stable/generated/torch.chunk.html)
# warns of this. The trap is that nothing goes wrong as long as $n$ divides the length, as it usually does
# in a first test.
#
# `tensor_split` always gives exactly $n$ pieces, whose sizes differ by at most one. It is what you
# want. For how many of the lengths up to 40 does `chunk` give too few?

# %%
for n in (2, 3, 4, 8):
    bad = [length for length in range(1, 41) if len(torch.arange(length).chunk(n)) != n]
    print(f"n = {n}: chunk gives too few pieces for {len(bad)} of 40 lengths, such as {bad[:6]}")

# %% [markdown]
# Now put scatter and gather together: cut a tensor on one rank, hand it out, let every rank work on its
# piece, and collect the results. This is the batch we began with, and squares stand in for losses.
#
# `tensor_split` gives pieces of different sizes, but our two functions, like PyTorch's, want pieces of
# one size. So each piece is padded to the length of the largest, and the padding is cut off in the end.
# Every rank can compute the sizes without a message:

# %%
def square_in_parallel(length):
    rank, n = dist.get_rank(), dist.get_world_size()
    sizes = [len(piece) for piece in torch.empty(length).tensor_split(n)]
    mine = torch.empty(max(sizes))  # all pieces of one size: padded
    pieces = None
    if rank == 0:
        pieces = [
            torch.nn.functional.pad(piece, (0, max(sizes) - len(piece)))
            for piece in torch.arange(float(length)).tensor_split(n)
        ]
    scatter(mine, pieces, src=0)
    results = gather(mine**2, dst=0)
    if rank == 0:
        return torch.cat([part[:size] for part, size in zip(results, sizes)]).tolist()


if check(scatter) and check(gather):
    print(run(square_in_parallel, 4, 9)[0])

# %% [markdown]
# ## Summary
#
# - **Scatter** hands out piece $r$ to rank $r$; **gather** collects them in rank order.
# - Both take $n-1$ messages of one piece each. The **root** (the source of a scatter, the destination of a
#   gather) copies its own piece and never sends it.
# - No rank sends to itself: `dist.send` refuses it, and a synchronous send to itself would never return.
# - Rank order is not the order of arrival.
# - Cut with `tensor_split(n)`. `chunk(n)` may give fewer than $n$ pieces.
#
# So eight ranks get an eighth of the batch each, and the log gets its line: one scatter, one gather.
# (Where every rank can read the files itself, no scatter is needed: PyTorch's
# [`DistributedSampler`](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
# tells each rank which samples are its own.) A gather also collects the shards of a model when they are
# to be saved in one file. But often the log wants only the mean of the eight losses. Then it is a waste
# to collect them all first.
#
# ### Check yourself
#
# <details><summary>One of 8 ranks scatters 8 pieces of 1 MB. How much is sent in all?</summary>
#
# 7 MB. The source's own piece stays.
# </details>
#
# <details><summary>How many pieces does <code>torch.arange(10).chunk(6)</code> give?</summary>
#
# Pieces of ⌈10/6⌉ = 2, so five of them.
# </details>
#
# <details><summary>Why must the entry of <code>dst</code> itself be a copy?</summary>
#
# Otherwise the list holds the very tensor <code>x</code>, and writing to <code>x</code> later would
# silently change the list.
# </details>
#
# **Next:** [04 · Reduce](04_reduce.ipynb): many values become one.
