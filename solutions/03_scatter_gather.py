# %% [markdown]
# # 03 · Scatter and gather
#
# **You will learn** to hand out pieces of data, to collect them again, to split a tensor for $n$
# ranks without losing any of it, and why no rank sends to itself.
#
# **You need** chapter [02](02_broadcast.ipynb).
#
# **Time:** 45 minutes, and 2 exercises.

# %%
import traceback

import torch
import torch.distributed as dist

from grader import check, hint, run

# %% [markdown]
# ## Scatter: a piece for everyone
#
# In a broadcast everybody gets the same. In a **scatter** the source has a list of $n$ pieces, and
# rank $r$ gets piece $r$.
#
# ![Before: rank 1 holds the pieces x0, x1, x2, x3. After a scatter from rank 1, rank r holds piece xr. Piece x1 never moves](../imgs/scatter.png)
#
# Piece $x_1$ is drawn dashed: it belongs to the source itself and never travels.
#
# **Predict:** three ranks; rank 0 has five ones, five twos and five threes. What does each rank
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
# ## Nobody sends to itself
#
# In many notes you find scatter written like this:
#
# ```
# if rank == src:
#     for each rank i: send pieces[i] to i
# recv out from src
# ```
#
# It is tempting: the source is treated like everybody else, and the code is short. But it makes the
# source send to itself. **Predict** what happens on 3 ranks.

# %%
def scatter_from_some_notes():
    out = torch.zeros(5)
    if dist.get_rank() == 0:
        for i in range(dist.get_world_size()):
            dist.send(torch.full((5,), float(i + 1)), i)
    dist.recv(out, 0)
    return out


run(scatter_from_some_notes, 3, may_fail=True)

# %% [markdown]
# A send to oneself is an error. **Predict:** who refuses it, PyTorch or gloo? And `isend`, too?

# %%
def who_refuses():
    if dist.get_rank() != 0:
        return None
    found = []
    for call in (dist.send, dist.isend):
        try:
            call(torch.ones(1), 0)
        except ValueError as error:
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)  # where it was raised
            package = frame.f_globals["__name__"].split(".")[0]
            found.append(f"{call.__name__}: {package} says, {error}")
    return found


print(*run(who_refuses, 2)[0], sep="\n")

# %% [markdown]
# `dist.send` itself refuses, before any backend is asked, so with NCCL or MPI as well. `dist.isend`
# [lets it through](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.isend), and
# the backend decides; gloo cannot, since a rank has no connection to itself. (The grader looks before
# gloo does, and says it more clearly.)
#
# Even if `send` allowed it, it would be no good here: a blocking send waits for its receive, and the
# receive stands in a line that the same rank has not reached. It would wait for itself for ever. The
# source simply *copies* its own piece.
#
# ## What it costs
#
# $n-1$ ranks need one piece each: $n-1$ messages, and $(n-1)$ times the bytes of one piece in all.
# Compare with a broadcast of the whole list, which would also bring everyone their piece, but would
# send $n$ times as much.
#
# ## Exercise: scatter
#
# `out` has the size of one piece on every rank and holds the result; nothing is returned. `chunks`
# is a list of $n$ tensors on `src` and `None` elsewhere. The caller's chunks must stay as they are.

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
# A **gather** turns the arrows round. Every rank has a piece, and afterwards one rank, the
# *destination*, has the list of all of them in rank order.
#
# ![Before: rank r holds xr. After a gather to rank 1, rank 1 holds the list x0, x1, x2, x3; the others keep their piece](../imgs/gather.png)

# %%
def built_in_gather():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((5,), float(rank + 1))
    pieces = [torch.zeros(5) for _ in range(n)] if rank == 0 else None
    dist.gather(x, pieces, dst=0)
    return pieces


run(built_in_gather, 3)

# %% [markdown]
# **Rank order** matters: entry $r$ is what rank $r$ sent, however late it came. Here is a gather that
# takes the messages as they come, and puts them at the end of a list.
#
# **Predict:** is it right?

# %%
def gather_as_they_come():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([rank * 10])
    if rank != 0:
        dist.send(x, 0)
        return None
    found = [x]
    for _ in range(n - 1):
        y = torch.empty_like(x)
        dist.recv(y)  # from anybody
        found.append(y)
    return [int(y) for y in found]


run(gather_as_they_come, 4)[0]

# %% [markdown]
# The values are all there, but not in rank order. Their places depend on who comes first, and `run`
# lets the highest rank come first; on a network it is whoever is fastest. To be right, receive from
# a *named* rank, or use what `recv` returns: the rank that the message came from.
#
# ## Exercise: gather
#
# Return the list in rank order on `dst`, and `None` on every other rank. `dst`'s own entry is a
# **copy** of its `x`: if the caller changes `x` later, the list must not change with it.

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
# Before you can scatter a tensor you have to cut it. PyTorch has two functions that look alike.
#
# **Predict:** cut 9 numbers for 4 ranks. How many pieces does each give?

# %%
numbers = torch.arange(9)
print("chunk(4):       ", [piece.tolist() for piece in numbers.chunk(4)])
print("tensor_split(4):", [piece.tolist() for piece in numbers.tensor_split(4)])

# %% [markdown]
# `chunk` first fixes the size of a piece, $\lceil 9/4 \rceil = 3$, and then needs only **three** of
# them. The fourth rank gets nothing, not even an empty piece, and `chunks[3]` raises an
# `IndexError`. `chunk` is often seen in code for $n$ ranks, and such code works until the length is
# not divisible by $n$.
#
# `tensor_split` always gives exactly $n$ pieces, whose sizes differ by at most one. It is what you
# want. For how many lengths up to 40 does `chunk` fail?

# %%
for n in (2, 3, 4, 8):
    bad = [length for length in range(1, 41) if len(torch.arange(length).chunk(n)) != n]
    print(f"n = {n}: chunk gives too few pieces for {len(bad)} of 40 lengths, such as {bad[:6]}")

# %% [markdown]
# Now put the pieces together: cut a tensor on one rank, hand it out, let everyone work on their
# piece, and collect. This is the oldest pattern of parallel programming.
#
# Since `tensor_split` gives pieces of different sizes, ranks first have to know how large theirs
# is. Everybody can compute it:

# %%
def square_in_parallel(length):
    rank, n = dist.get_rank(), dist.get_world_size()
    sizes = [len(piece) for piece in torch.empty(length).tensor_split(n)]
    mine = torch.empty(max(sizes))  # our scatter needs pieces of one size: pad them
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
# ## Every number in an example has to fit
#
# A last warning about examples you may read. One published text says "each rank $r$ holds $[r]$",
# one number, and then shows a gather whose result has four numbers *per rank*. Both cannot be true.
# When you read an example, do what `check` does: count the elements on both sides. Gather neither
# makes nor loses any, so $n$ ranks with $k$ elements each give $n \cdot k$.

# %%
def count_elements(k):
    x = torch.full((k,), float(dist.get_rank()))
    pieces = [torch.empty(k) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(x, pieces, dst=0)
    return x.numel(), sum(p.numel() for p in pieces) if pieces else None


for k in (1, 4):
    print(f"4 ranks with {k} elements each: rank 0 has {run(count_elements, 4, k)[0][1]} in the end")

# %% [markdown]
# ## Summary
#
# - **Scatter** hands out piece $r$ to rank $r$; **gather** collects them in rank order.
# - Both take $n-1$ messages of one piece each. The root's own piece is copied, never sent.
# - No rank sends to itself: `dist.send` refuses it, and a blocking send that did not would hang.
# - Rank order is not order of arrival.
# - Cut with `tensor_split(n)`. `chunk(n)` may give fewer than $n$ pieces.
#
# **Where this is used:** handing out the samples of a data set, collecting logs and metrics on one
# rank, saving sharded parameters into one file.
#
# ### Check yourself
#
# <details><summary>You scatter pieces of 1 MB from one rank to 8 ranks. How much is sent in all?</summary>
#
# 7 MB. The source's own piece stays.
# </details>
#
# <details><summary>Into how many pieces does <code>torch.arange(10).chunk(6)</code> cut?</summary>
#
# Pieces of ⌈10/6⌉ = 2, so five of them.
# </details>
#
# <details><summary>Why must the entry of <code>dst</code> itself be a copy?</summary>
#
# Otherwise the list holds the very tensor <code>x</code>. Whoever writes to <code>x</code> later
# changes the list without knowing.
# </details>
#
# **Next:** [04 · Reduce](04_reduce.ipynb): many values become one.
