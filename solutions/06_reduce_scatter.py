# %% [markdown]
# # 06 · Reduce-scatter
#
# After backward, every rank has a gradient for *every* parameter, each from its own part of the batch. In
# sharded training ([ZeRO](https://arxiv.org/abs/1910.02054), FSDP) a rank updates only its own $1/n$ of the
# parameters. Of the summed gradients it needs just that part, and the rest should not be sent to it. What
# is the cheapest way to add up everything and keep a $1/n$ share?
#
# **You will learn** to combine the data of all ranks so that each rank ends with one part of the
# result, first directly and then with partial sums that travel round a ring; and to tell apart three
# things with nearly the same name.
#
# **You need** chapters [04](04_reduce.ipynb) and [05](05_all_gather.ipynb).
#
# **Time:** 75 minutes, with 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# Every rank has a list of $n$ chunks, one for each rank. Chunk $r$ is summed over all ranks, and the sum
# goes to rank $r$. That is a **reduce-scatter**.
#
# ![Before: rank 0 holds A0, A1, A2, A3, rank 1 holds B0 to B3, rank 2 C0 to C3, rank 3 D0 to D3. After: rank r holds the sum of all chunks r. A0, B1, C2 and D3 do not travel](../imgs/reduce_scatter.png)
#
# $\Sigma_0$ is $A_0 + B_0 + C_0 + D_0$, and so on. Read the left side in *rows*: row $r$, added up, is what
# rank $r$ ends with. The dashed chunks need not travel, since they are already where they belong.
#
# **Predict:** on three ranks, chunk $j$ of rank $r$ is the vector $[r+1,\ 2(r+1)]$ with each element to the
# power $j+1$. So rank 0 has $[1, 2]$, $[1, 4]$, $[1, 8]$ and rank 1 has $[2, 4]$, $[4, 16]$,
# $[8, 64]$. What does rank 1 end with?
#
# <details><summary>[6, 12]</summary>
#
# No: that is the sum of the chunks numbered 0, and it goes to rank 0.
# </details>
#
# <details><summary>[14, 84]</summary>
#
# No: that is rank 1's own three chunks, added up. The sum is over ranks.
# </details>
#
# <details><summary>[14, 56]</summary>
#
# Yes: the chunks numbered 1 are squares: 1 + 4 + 9 = 14, and 4 + 16 + 36 = 56.
# </details>

# %%
def powers():
    r = dist.get_rank()
    return [torch.tensor([r + 1.0, 2 * (r + 1.0)]) ** (j + 1) for j in range(dist.get_world_size())]


def built_in():
    out = torch.empty(2)
    dist.reduce_scatter(out, powers(), op=dist.ReduceOp.SUM)
    return out.tolist()


for r, result in enumerate(run(built_in, 3)):
    print(f"rank {r}: {result}")

# %% [markdown]
# ## What its name says: a reduce, and a scatter
#
# In a scatter (chapter 03), rank $r$ gets chunk $r$ of *one* rank's list. In a reduce-scatter, it gets
# chunk $r$ of the **sum of all lists**.
#
# ![Two rows. Scatter: rank 1 holds x0 to x3; afterwards rank r holds xr. Reduce-scatter: every rank holds four chunks; afterwards rank r holds the sum of all chunks r](../imgs/scatter_and_reduce_scatter.png)
#
# So the plain way puts chapters 04 and 03 together: reduce the lists to rank 0, then scatter the result
# from there.
#
# **Predict:** how many bytes does rank 2 send, if a chunk has 8 bytes and there are 4 ranks? And how many
# of these does rank 0 need for its own result?
#
# <details><summary>32 bytes, of which rank 0 needs 8</summary>
#
# Yes: rank 2 sends all four chunks, and rank 0's own result is the sum of the chunks numbered 0.
# </details>
#
# <details><summary>24 bytes, of which rank 0 needs 8</summary>
#
# No: rank 2's own chunk has to go as well, since rank 0 does all the adding.
# </details>
#
# <details><summary>8 bytes, of which rank 0 needs 8</summary>
#
# No: a reduce adds up the whole lists, so rank 2 sends all four chunks.
# </details>

# %%
def reduce_then_scatter(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    lists = torch.stack(chunks)
    result = torch.empty_like(chunks[0])
    if rank == 0:
        buffer = torch.empty_like(lists)
        for src in range(1, n):
            dist.recv(buffer, src)
            lists += buffer
        for dst in range(1, n):
            dist.send(lists[dst], dst)
        result.copy_(lists[0])
    else:
        dist.send(lists, 0)
        dist.recv(result, 0)
    return result


def powers_reduced_by(algorithm):
    return algorithm(powers()).tolist()


print("three ranks:", list(run(powers_reduced_by, 3, reduce_then_scatter)))
print(run(powers_reduced_by, 4, reduce_then_scatter).trace)

# %% [markdown]
# The results are the same as above, but three quarters of what arrives at rank 0 is only added up there and
# sent away again.
#
# You can also see a reduce-scatter as $n$ **reduces** of one chunk each, one to each rank. That is how the
# cell below does it.
#
# ## Count the elements
#
# Four ranks hold $[1, 1]$, $[2, 2]$, $[3, 3]$, $[4, 4]$.
#
# **Predict:** what does a reduce-scatter with SUM leave on each of them?
#
# <details><summary>[10] on each of the four</summary>
#
# No: two elements make only two pieces, so there is nothing for two of the ranks.
# </details>
#
# <details><summary>[10] on two ranks, nothing on the others</summary>
#
# Yes: two elements cannot be cut into four pieces, and each sum is 1 + 2 + 3 + 4.
# </details>
#
# <details><summary>[10, 10] on each of the four</summary>
#
# No: after a reduce-scatter, no rank has the whole result. Its two elements go to two ranks.
# </details>

# %%
def reduce_each_piece(length, average):
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((length,), rank + 1.0)
    mine = None
    for dst, piece in enumerate(x.tensor_split(n)):
        total = piece.clone()
        if total.numel():
            dist.reduce(total, dst)
        if dst == rank:
            mine = total / n if average else total
    return mine.tolist()


for length in (2, 4):
    pieces = [len(piece) for piece in torch.empty(length).tensor_split(4)]
    print(f"{length} elements for 4 ranks are cut into pieces of {pieces}")
    print("   SUM:", list(run(reduce_each_piece, 4, length, False)))
    print("   AVG:", list(run(reduce_each_piece, 4, length, True)))

# %% [markdown]
# To end with one number *everywhere*, take four elements: $[10]$ with SUM, and $[2.5]$ only with AVG.
#
# The rule: $n$ lists of $k$ elements each are combined into **one** result of $k$ elements, which is spread
# over the ranks, $k/n$ on each. (Where $n$ does not divide $k$, cut with `tensor_split`, as in chapter 03,
# or pad the list. Chapter [07](07_all_reduce.ipynb) does both.)
#
# ## One half of something larger
#
# Four ranks hold $[0,1,2,3]$, $[1,2,3,4]$, $[2,3,4,5]$ and $[3,4,5,6]$; each chunk is one number. First we
# reduce-scatter them, and then *all-gather* the four results.
#
# **Predict:** what does every rank hold in the end?
#
# <details><summary>The sum of the four vectors</summary>
#
# Yes: rank r has the sum of the elements r, and the all-gather puts the four sums side by side.
# </details>
#
# <details><summary>The four vectors, one after another</summary>
#
# No: an all-gather of what the ranks <em>began</em> with would leave that. Here it gathers sums.
# </details>
#
# <details><summary>The vector that it began with</summary>
#
# No: the all-gather collects the pieces again, but by then they are sums.
# </details>

# %%
def two_steps():
    x = torch.arange(4) + dist.get_rank()
    part = torch.empty(1, dtype=x.dtype)
    dist.reduce_scatter_tensor(part, x)
    everything = torch.empty_like(x)
    dist.all_gather_into_tensor(everything, part)
    return part.tolist(), everything.tolist()


for r, (part, everything) in enumerate(run(two_steps, 4)):
    print(f"rank {r}: {part} after reduce-scatter, {everything} after all-gather")

# %% [markdown]
# Keep this in mind: it is the idea of chapter 07.
#
# ## What has to be sent
#
# The result of rank $r$ depends on chunk $r$ of every rank. So each of the $n-1$ chunks that a rank holds
# for the others has to leave it, alone or as part of a partial sum, which is no shorter. Therefore
# **every rank sends at least $n-1$ chunks**. Even a switch that adds on the way does not change this: a rank
# then *receives* less, but it still has to send its chunks to the switch.
#
# That is a bound on chunks, not on messages, since several chunks can travel in one message. The way
# through rank 0 took only six messages, but each of the first three was four chunks long.
#
# ## Exercise: reduce_scatter
#
# `chunks` is a list of $n$ tensors of one shape and dtype. Return the reduction of `chunks[rank]` over all
# ranks, for SUM, AVG, MIN and MAX. No rank may send more than $n-1$ chunks. AVG is required only for
# floating-point tensors; SUM, MIN and MAX must also work on integers, exactly.
#
# The caller's chunks must stay as they are, and the result must be a tensor of its own. The helper of
# chapter [04](04_reduce.ipynb) is there again.

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
def reduce_scatter(chunks: list[torch.Tensor], op: dist.ReduceOp) -> torch.Tensor:
    """The reduction of all ranks' chunks[rank]."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    buffer = torch.empty_like(total)
    for k in range(1, n):
        to, source = (rank + k) % n, (rank - k) % n
        request = dist.isend(chunks[to], to)
        dist.recv(buffer, source)
        request.wait()
        combine(total, buffer, op)
    if op == dist.ReduceOp.AVG:
        total /= n
    return total
    ### END SOLUTION


check(reduce_scatter)

# %% [markdown]
# ## Around the ring
#
# Now only neighbours talk, as in the last chapter. There, pieces were passed on as they were. Here
# **partial sums** are passed on: a chunk starts with one rank's numbers, and each rank on its way adds
# its own.
#
# ![Four panels. At the start each rank holds its own four chunks; one of them, with a solid line, is about to leave: chunk 0 on rank 1, chunk 1 on rank 2, chunk 2 on rank 3, chunk 3 on rank 0. In each round these go one rank to the right and take on one more colour, until after round 3 chunk r is on rank r with all four colours](../imgs/ring_reduce_scatter.png)
#
# The colours show whose numbers are in a chunk. Chunks with a solid line travel in the next round, if there
# is one; a dashed chunk stays where it is until a partial sum reaches it. Follow chunk 0: it leaves rank 1,
# ranks 2 and 3 add theirs, and rank 0 adds the last. To be complete *on rank 0*, it has to start one rank
# *after* rank 0.
#
# In general, chunk $j$ starts on rank $j+1$ (counted modulo $n$), moves one rank to the right in each round,
# and is complete on rank $j$.
#
# **Predict:** on three ranks, which chunk does rank 0 send in round 1, and which in round 2?
#
# <details><summary>Chunk 0, then chunk 2</summary>
#
# No: chunk 0 must be complete on rank 0, so it starts on rank 1 and arrives here last.
# </details>
#
# <details><summary>Chunk 2, then chunk 0</summary>
#
# No: chunk 2 does start here, but chunk 0 arrives last, and stays.
# </details>
#
# <details><summary>Chunk 2, then chunk 1</summary>
#
# Yes: chunk 2 starts on rank 2 + 1, which is rank 0. In round 1 chunk 1 comes in, and moves on.
# </details>
#
# The run shows the rounds, with letters for the numbers.


# %%
def ring_in_letters(n):
    names = "ABCDEFGH"
    parts = [[f"{names[r]}{j}" for j in range(n)] for r in range(n)]
    for s in range(1, n):
        holder = {j: (j + s) % n for j in range(n)}  # the rank that has chunk j before round s
        for j, r in sorted(holder.items(), key=lambda item: item[1]):
            right = (r + 1) % n
            print(f"round {s}: rank {r} sends {parts[r][j]:5} to rank {right}")
            parts[right][j] = parts[r][j] + "+" + parts[right][j]
    for r in range(n):
        print(f"rank {r} has {parts[r][r]}")


ring_in_letters(3)

# %% [markdown]
# Before round $s$, the partial sum of chunk $j$ is on rank $(j + s) \bmod n$. Now ask the other way round:
# which partial sum is on rank $r$, and is sent from there? And which one is on its left neighbour, and
# arrives? In the last round, the one that arrives must be chunk $r$ itself.
#
# Compare this with the all-gather of the last chapter. There a piece starts on the rank it belongs to and
# is copied away from it; here the contributions come together on that rank. Play the all-gather's ring
# backwards in time, and its messages go to the *left*. Number the ranks the other way round, so that they
# go to the right again, and you have this ring: reversed and mirrored.
#
# Autograd reverses it in the same way. The copies that an all-gather makes of a piece each receive a
# gradient, and the owner of the piece needs their sum: **the backward of an all-gather is a
# reduce-scatter**, with SUM, and the backward of a reduce-scatter is an all-gather. So FSDP gathers weights
# on the way forward, and reduce-scatters their gradients on the way back.
#
# ### Three names
#
# - **Reduce-scatter** is the collective of this chapter. That is its name in
#   [MPI](https://www.mpi-forum.org/docs/),
#   [NCCL](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html) and PyTorch.
# - **"Scatter-reduce"** is what an
#   [article from Baidu](https://andrew.gibiansky.com/blog/machine-learning/baidu-allreduce/) and others call
#   the first half of a ring all-reduce. It is a reduce-scatter around a ring, under another name. The chunks
#   may be counted differently: on the article's ring, rank $r$ ends with chunk $r+1$.
# - **`torch.scatter_reduce`** is something quite different. It works inside *one* tensor on *one*
#   rank, and sends nothing. Chapter [10](10_scatter_reduce.ipynb) is about it.
#
# ## Exercise: ring_reduce_scatter
#
# Return the same result, but only neighbours talk. It takes $n-1$ rounds, and in each of them every rank
# sends one chunk.
#
# There are three traps. `chunks` must stay **unchanged**, so add into copies; `list(chunks)` copies the
# list but not the tensors in it. Even for AVG, what travels is a partial *sum*: divide once, at the end.
# And nothing may be received into a tensor that is still being sent.

# %%
def ring_reduce_scatter(chunks: list[torch.Tensor], op: dist.ReduceOp) -> torch.Tensor:
    """The reduction of all ranks' chunks[rank], around the ring."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    parts = [chunk.clone() for chunk in chunks]
    buffer = torch.empty_like(parts[0])
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], right)
        dist.recv(buffer, left)
        request.wait()
        combine(parts[(rank - s - 1) % n], buffer, op)
    if op == dist.ReduceOp.AVG:
        parts[rank] /= n
    return parts[rank]
    ### END SOLUTION


check(ring_reduce_scatter)

# %% [markdown]
# ## What your ring did
#
# Here it is at work, with names for the numbers: A2 is chunk 2 of rank 0, and A2+D2 is a partial sum.

# %%
replay(ring_reduce_scatter, 4) if check(ring_reduce_scatter) else None

# %% [markdown]
# Rank $r$ ends with A…D$r$, in which the chunk $r$ of every rank counts once. Now compare the traffic of the
# three ways. The chunks have two int64 numbers each, which are 16 bytes:

# %%
def sum_by(algorithm):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [torch.full((2,), rank) for _ in range(n)]
    return algorithm(chunks, dist.ReduceOp.SUM).tolist()


def sum_through_rank_0(chunks, op):
    return reduce_then_scatter(chunks)


algorithms = {"through rank 0": sum_through_rank_0}
if check(reduce_scatter):
    algorithms["reduce_scatter"] = reduce_scatter
if check(ring_reduce_scatter):
    algorithms["ring_reduce_scatter"] = ring_reduce_scatter

for n in (4, 8):
    print(f"{n} ranks, chunks of 16 bytes")
    for name, algorithm in algorithms.items():
        t = run(sum_by, n, algorithm).trace.traffic
        counts = f"{t.messages:2} messages, {t.rounds:2} rounds, {t.max_sent:3} bytes at most by one"
        print(f"   {name:20} {counts}, {t.bytes:4} in all")

# %% [markdown]
# The ring sends exactly as many bytes as the direct way, and only to the neighbour. Both reach the bound:
# each rank sends $n-1$ chunks. If a list has $S$ bytes, a chunk has $S/n$, so each rank sends
# $\frac{n-1}{n} S$, which is less than $S$ however many ranks there are. Through rank 0, each of the others
# sends all of its $S$ bytes, and rank 0 has to receive $(n-1)\,S$ and add them up.
#
# In one respect the direct way is better. There the ranks' own numbers travel, and the receiver can add them
# up in float32 even if they travel in bfloat16. On a ring partial sums travel, and in bfloat16 each of them is
# rounded again. So Megatron-LM has [a reduce-scatter for low
# precision](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/distributed/reduce_scatter_with_fp32_accumulation.py)
# that sends every chunk straight to its rank, and adds there in float32.
#
# ### Where to divide
#
# A ring of 3 ranks holds the numbers 4, 8 and 12, and is to find their average, 8. Dividing the finished sum
# by 3 is one way.
#
# **Predict:** which of these also gives 8?
#
# <details><summary>Each rank divides its number, and none divides later</summary>
#
# Yes: 4/3 + 8/3 + 12/3 = 8.
# </details>
#
# <details><summary>Each rank divides the sum when it has added its number</summary>
#
# No: the first numbers are divided again and again. (4 + 8)/3 = 4, and (4 + 12)/3 is 5.33.
# </details>
#
# <details><summary>Each rank divides its number, and the last one also divides the sum</summary>
#
# No: everything is divided twice, and 8/3 is 2.67.
# </details>

# %%
a, b, c = 4.0, 8.0, 12.0

print("sum travels, divided once:  ", (a + b + c) / 3)
print("divided after each addition:", round(((a + b) / 3 + c) / 3, 3))
print("divided before and after:   ", round((a / 3 + b / 3 + c / 3) / 3, 3))
print("divided before only:        ", round(a / 3 + b / 3 + c / 3, 3))

# %% [markdown]
# Dividing beforehand keeps the sums small, but its $n$ divisions may round $n$ times, where a single
# division rounds at most once.
#
# And integers? Their average is usually not an integer, so AVG is required only for floating-point tensors.
# SUM, MIN and MAX of integers are exact in any order, so all algorithms agree to the last bit:

# %%
def integers(algorithm, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [torch.tensor([(rank * 7 + j * 5) % 11 - 5, rank - j]) for j in range(n)]
    return algorithm(chunks, op).tolist()


if check(reduce_scatter) and check(ring_reduce_scatter):
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        direct = list(run(integers, 3, reduce_scatter, op))
        ring = list(run(integers, 3, ring_reduce_scatter, op))
        print("the same:", direct == ring, ring)

# %% [markdown]
# ## Summary
#
# - **Reduce-scatter**: rank $r$ ends with the sum (average, minimum, maximum) of the chunks $r$ of all ranks.
# - It is a reduce and a scatter, or $n$ reduces of one chunk each. Each rank keeps $1/n$ of the result.
# - Each rank sends $n-1$ chunks, directly or around the ring. No rank can send less.
# - On the **ring**, partial sums travel. In round $s$ rank $r$ sends chunk $(r-s) \bmod n$ and adds
#   what arrives to chunk $(r-s-1) \bmod n$.
# - The backward of an all-gather is a reduce-scatter, and the other way round.
# - For an average, divide once. Leave the caller's chunks alone.
# - The ring's "scatter-reduce" is a reduce-scatter; `torch.scatter_reduce` is something else.
#
# Back to the gradients: of $S$ bytes each rank sends $\frac{n-1}{n} S$, which is the least possible,
# and ends with the sums for just those parameters that it updates. ZeRO
# ([Rajbhandari and others 2020](https://arxiv.org/abs/1910.02054)) and
# [FSDP](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html) do this.
#
# **Where else it is used:** at the outputs of tensor-parallel layers with sequence parallelism (chapter
# [17](17_sharded_matmul.ipynb)), and as the first half of the ring all-reduce
# ([Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)).
#
# ### Check yourself
#
# <details><summary>8 ranks, each with a list of 8 chunks of 1 MB. How much does each rank send, and how much does it hold in the end?</summary>
#
# It sends 7 MB, and ends with 1 MB.
# </details>
#
# <details><summary>On a ring of 5, which chunk does rank 2 send first, and with which chunk does it combine what arrives first?</summary>
#
# It sends (2 − 1) mod 5 = 1, and what arrives is chunk (2 − 2) mod 5 = 0.
# </details>
#
# <details><summary>A ring sends chunk r first on rank r. On which rank is chunk r complete?</summary>
#
# On rank r − 1, the last one that it reaches. So rank r ends with chunk r + 1. As a ring it is as good as
# ours, but it does not leave the chunks where a reduce-scatter promises them.
# </details>
#
# **Next:** [07 · All-reduce](07_all_reduce.ipynb): every rank ends with the whole sum.
