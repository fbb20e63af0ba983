# %% [markdown]
# # 07 · All-reduce
#
# In data-parallel training, every rank computes gradients from its own part of the batch. Before the
# optimizer step, all ranks need the *average* of these gradients, and the same one, or the copies of the
# model drift apart. A model of 7 billion parameters has 14 GB of gradients in bfloat16, and they have to be
# averaged in every step. So it matters how the sum is made.
#
# **You will learn** to give *every* rank the sum, why the obvious way is slow, and the identity that
# carries the rest of this course: an all-reduce is a reduce-scatter followed by an all-gather.
#
# **You need** chapters [02](02_broadcast.ipynb), [04](04_reduce.ipynb) and
# [06](06_reduce_scatter.ipynb).
#
# **Time:** 75 minutes, with 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# A reduce gives the sum to one rank. An **all-reduce** gives it to all of them.
#
# ![Before: four ranks hold A, B, C, D. After an all-reduce every rank holds A+B+C+D](../imgs/all_reduce.png)
#
# Four ranks hold [1, 1], [2, 2], [3, 3] and [4, 4]. What does each rank hold after an all-reduce with SUM?
# And what is their average?

# %%
def built_in_all_reduce():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((2,), float(rank + 1))
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    return x.tolist(), (x / n).tolist()


for r, (total, average) in enumerate(run(built_in_all_reduce, 4)):
    print(f"rank {r}: SUM {total}, AVG {average}")

# %% [markdown]
# We computed the average as a sum and one division. There is also `dist.ReduceOp.AVG`, but whether gloo
# supports it depends on the version of PyTorch. A sum and a division work everywhere.
#
# Here three ranks hold five ones, five twos and five threes:

# %%
def three_ranks():
    x = torch.full((5,), dist.get_rank() + 1)
    dist.all_reduce(x)
    return x


run(three_ranks, 3)

# %% [markdown]
# ## Beside a reduce
#
# ![Side by side: after a reduce to rank 1 only rank 1 holds A+B+C+D and the others what they had; after an all-reduce all four ranks hold it](../imgs/reduce_and_all_reduce.png)
#
# In the picture, a reduce leaves the tensors of the other ranks alone. gloo's does not: it uses some of them
# for partial sums, as you saw in chapter 04. Suppose we reduce to rank 0, and then broadcast from rank 0.
#
# **Predict:** what do the four ranks hold then?
#
# <details><summary>The sum on rank 0, partial sums elsewhere</summary>
#
# No: the broadcast overwrites whatever is in <code>x</code> on the other ranks.
# </details>
#
# <details><summary>The sum on every rank</summary>
#
# Yes: the broadcast overwrites whatever the reduce has left on the other ranks.
# </details>
#
# <details><summary>More than the sum on some ranks</summary>
#
# No: a broadcast replaces what is there, and adds nothing to it.
# </details>

# %%
def reduce_then_broadcast():
    x = torch.full((2,), float(dist.get_rank() + 1))
    dist.reduce(x, dst=0)
    dist.broadcast(x, src=0)
    return x.tolist()


print(list(run(reduce_then_broadcast, 4)))

# %% [markdown]
# ## The obvious way: through a root
#
# That was an all-reduce already: all tensors go to one rank, the **root**, and the result comes back from
# there. How often does each of the other ranks send and receive? And how often does the root? In all, it
# takes $2(n-1)$ messages.
#
# ## Exercise: all-reduce through a root
#
# Write it with `send` and `recv` (or their relatives), for SUM, AVG, MIN, MAX and PRODUCT. You may choose
# the root. The result is in `x` itself, on every rank, and nothing is returned.
#
# The order matters: the root cannot tell any rank the result before it has heard from all of them. And AVG
# needs one division. Where? Here is `combine` of chapter 04, for you to use:

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
def all_reduce_rooted(x: torch.Tensor, op: dist.ReduceOp) -> None:
    """x becomes the reduction of everyone's x, on every rank: reduce to one, then broadcast."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    buffer = torch.empty_like(x)
    for src in range(1, n):
        dist.recv(buffer, src)
        combine(x, buffer, op)
    if op == dist.ReduceOp.AVG:
        x /= n
    for dst in range(1, n):
        dist.send(x, dst)
    ### END SOLUTION


rooted = check(all_reduce_rooted)
rooted

# %% [markdown]
# ## Correct, and slow
#
# (The ring in the table of a passing verdict is that of chapter [11](11_ring_all_reduce.ipynb).)
#
# **Predict:** with 8 ranks and 840 numbers each, how many numbers go in and out of the root, taken
# together? And how many go in and out of any other rank?
#
# <details><summary>5880 at the root, 840 at any other rank</summary>
#
# No: that is one direction only. Seven tensors come in, and then the sum goes out seven times.
# </details>
#
# <details><summary>1680 at the root, 1680 at any other rank</summary>
#
# No: every other rank sends one tensor and receives one, but the root does that with each of the seven.
# </details>
#
# <details><summary>11,760 at the root, 1680 at any other rank</summary>
#
# Yes: seven tensors in and seven out at the root, one in and one out at the others.
# </details>

# %%
def numbers_in_and_out(trace):
    passed = [0] * trace.world_size
    for message in trace.messages:
        passed[message.source] += message.count
        passed[message.destination] += message.count
    return passed


if rooted:
    for n in (2, 4, 8):
        trace = run(all_reduce_rooted, n, torch.ones(840), dist.ReduceOp.SUM).trace
        passed = sorted(numbers_in_and_out(trace))
        print(
            f"{n} ranks: {trace.traffic.messages} messages, {trace.traffic.rounds} rounds;"
            f" busiest rank {passed[-1]} numbers, least busy {passed[0]}"
        )

# %% [markdown]
# (These are the numbers for the straightforward version. If you wrote a tree or a chain, yours differ.)
#
# Everything goes through one rank. It receives $n-1$ full tensors, one after the other, and then sends
# $n-1$. Meanwhile each of the others sends once, receives once, and otherwise waits. Twice as many ranks
# make the queue about twice as long: adding machines makes it *slower*.
#
# Trees help with the rounds: $\lceil \log_2 n \rceil$ up and $\lceil \log_2 n \rceil$ down. But each message
# is still the whole tensor, and about half of the ranks do no more than send once and receive once.
#
# ## A better idea: each rank is the root of a piece
#
# Why should one rank add up everything? Cut the tensor into $n$ pieces, and let rank $r$ add up piece $r$.
# That is a **reduce-scatter**. Then let each rank send its sum to all the others. That is an **all-gather**.
#
# ![Three stages on four ranks. First each rank holds four pieces of its own letter, A0 to A3, B0 to B3, C0 to C3, D0 to D3; A0, B1, C2 and D3 do not travel. After a reduce-scatter rank r holds the sum of all pieces r. After an all-gather every rank holds all four sums](../imgs/all_reduce_identity.png)
#
# **all-reduce = reduce-scatter + all-gather.** Remember this line: the ring of chapter 11, data-parallel
# training and sharded training are built on it.
#
# Ranks 0 to 3 hold [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5] and [3, 4, 5, 6], as in chapter 06. Here is what
# each rank holds after the reduce-scatter, and after the all-gather:

# %%
def two_stages():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.arange(rank, rank + n)

    mine = torch.empty(1, dtype=x.dtype)
    dist.reduce_scatter(mine, list(x.clone().tensor_split(n)))

    pieces = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(pieces, mine)

    dist.all_reduce(x)  # for comparison
    return mine.item(), torch.cat(pieces).tolist(), x.tolist()


for r, (mine, gathered, built_in) in enumerate(run(two_stages, 4)):
    print(f"rank {r}: {mine:2} -> {gathered}, all_reduce {built_in}")

# %% [markdown]
# ## In place, also in two dimensions
#
# "In place" means that the caller's own `x` holds the result. You know one trap from chapter 02: `x = ...`
# only gives the name `x` to another tensor. Here is a second one: the function below calls
# `x.flatten().zero_()`, once with a vector, once with a matrix and once with a transposed matrix.
#
# **Predict:** which of the three does it change?
#
# <details><summary>All three</summary>
#
# No: the elements of a transposed matrix are not stored in order, so <code>flatten()</code> copies them.
# </details>
#
# <details><summary>Only the vector</summary>
#
# No: a plain matrix is stored in order, like a vector, and <code>flatten()</code> gives a view of it.
# </details>
#
# <details><summary>The vector and the matrix</summary>
#
# Yes: <code>flatten()</code> gives a view of these two, and a copy of the transposed one.
# </details>

# %%
def fill(x):
    x.flatten().zero_()


vector, matrix, turned = torch.ones(2), torch.ones(2, 3), torch.ones(2, 3).T
for name, x in {"vector": vector, "matrix": matrix, "turned": turned}.items():
    fill(x)
    print(f"{name}: {'changed' if not x.any() else 'as it was'}")

# %% [markdown]
# `flatten()` makes a view where it can, and a copy where it must. So do not rely on a view, but write the
# result back: `x.copy_(flat.view_as(x))`.
#
# ## Exercise: all-reduce in two stages
#
# Two calls did it above. Now write what is inside them, with sends and receives: rank $r$ reduces piece $r$,
# and then hands it to all the others. `x` has any length, 0 included, one or two dimensions, and may be a
# transposed matrix; treat it as one long row of elements. If `x` has $K$ elements, **no rank sends more than
# $2(n-1)$ pieces** of $\lceil K/n \rceil$ each. Where $n$ does not divide $K$, how do you cut the row into
# $n$ pieces (chapter [03](03_scatter_gather.ipynb))? And AVG needs one division. Which rank divides what?
#
# (`check` also takes an answer that calls `dist.reduce_scatter` and `dist.all_gather`, or their siblings that
# take one large tensor. Then read the section on padding first. `dist.all_reduce` is refused.)

# %%
def all_reduce_sharded(x: torch.Tensor, op: dist.ReduceOp) -> None:
    """x becomes the reduction of everyone's x: a reduce-scatter, then an all-gather."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(n) if other != rank]
    flat = x.flatten()
    pieces = list(flat.tensor_split(n))
    mine = pieces[rank].clone()
    buffer = torch.empty_like(mine)

    sends = [dist.isend(pieces[other], other) for other in others]
    for other in others:
        dist.recv(buffer, other)
        combine(mine, buffer, op)
    for request in sends:
        request.wait()
    if op == dist.ReduceOp.AVG:
        mine /= n

    sends = [dist.isend(mine, other) for other in others]
    for other in others:
        dist.recv(pieces[other], other)
    for request in sends:
        request.wait()
    pieces[rank].copy_(mine)
    x.copy_(flat.view_as(x))
    ### END SOLUTION


sharded = check(all_reduce_sharded)
sharded

# %% [markdown]
# Here yours and the built-in one reduce nine elements on four ranks:

# %%
def mine_and_theirs():
    mine = torch.arange(9).view(3, 3) + dist.get_rank()
    theirs = mine.clone()
    all_reduce_sharded(mine, dist.ReduceOp.SUM)
    dist.all_reduce(theirs)
    return mine.flatten().tolist(), torch.equal(mine, theirs)


if sharded:
    for r, (mine, equal) in enumerate(run(mine_and_theirs, 4)):
        print(f"rank {r}: {mine}, equal: {equal}")

# %% [markdown]
# ## What it costs
#
# **Predict:** how much does one rank send, measured in whole tensors?
#
# <details><summary>1 on 2 ranks, less than 2 on 8 ranks</summary>
#
# Yes: in each of the two stages it sends what is not its own piece, $\frac{1}{2}$ or $\frac{7}{8}$ of a
# tensor.
# </details>
#
# <details><summary>1 on 2 ranks, 7 on 8 ranks</summary>
#
# No: it sends to seven others, but to each of them only a piece, $\frac{1}{8}$ of a tensor.
# </details>
#
# <details><summary>2 on 2 ranks, 2 on 8 ranks</summary>
#
# No: there are two stages, but in neither does a rank send all pieces. Its own stays.
# </details>

# %%
if sharded:
    for n in (2, 3, 4, 8):
        result = run(all_reduce_sharded, n, torch.ones(840), dist.ReduceOp.SUM)
        elements = result.trace.max_sent_elements
        print(f"{n} ranks: one rank sends {elements:4} = {elements / 840:.3f} × 840")

# %% [markdown]
# With two ranks it is one tensor, and with more it grows towards two. It is sent in two phases:
#
# - in the reduce-scatter, a rank sends every piece but its own: $\frac{n-1}{n}$ of the tensor;
# - in the all-gather, it sends its own sum, $\frac{1}{n}$ of the tensor, to $n-1$ ranks: again
#   $\frac{n-1}{n}$.
#
# Together that is $\frac{2(n-1)}{n}$, which stays below 2 for any $n$. (This is what a rank *sends*; it
# receives as much.) If the ranks do the adding and talk in point-to-point messages, no all-reduce can ask
# less of its busiest rank, as [Patarasuk and Yuan (2009)](https://doi.org/10.1016/j.jpdc.2008.09.002)
# prove. Their proof does not cover switches that add. With these, it is enough that a rank sends its tensor
# once and receives the sum once ([SHARP](https://doi.org/10.1109/COMHPC.2016.006) on InfiniBand,
# [NVLS](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable) on NVLink).
#
# Through a root, $n-1$ whole tensors go in and as many come out: on 8 ranks, four times as much as here.
#
# One thing got worse: there are $2n(n-1)$ messages now, and each rank starts $2(n-1)$ of them, however small
# they are. In the terms of chapter 02, there is as little of $\beta$ as possible, but much of $\alpha$. The
# ring of chapter 11 sends no more than this way, and talks to neighbours only.
#
# ## Padding
#
# `tensor_split(4)` cuts 9 elements into pieces of 3, 2, 2 and 2. Does gloo's reduce-scatter take pieces that
# differ in size? Does its all-gather?

# %%
def uneven_reduce_scatter():
    pieces = [piece.clone() for piece in torch.arange(9).tensor_split(4)]
    mine = torch.empty_like(pieces[dist.get_rank()])
    dist.reduce_scatter(mine, pieces)
    return mine.tolist()


def uneven_all_gather():
    pieces = [piece.clone() for piece in torch.arange(9).tensor_split(4)]
    dist.all_gather(pieces, pieces[dist.get_rank()].clone())


print("reduce_scatter:", list(run(uneven_reduce_scatter, 4)))
run(uneven_all_gather, 4, may_fail=True)

# %% [markdown]
# Its reduce-scatter takes them, its all-gather does not. There are two ways out.
#
# - **Pad the whole.** Copy the elements into a longer tensor, whose length is the next multiple of $n$, and
#   cut the padding off at the end. Then all pieces have one size.
# - **Pad the pieces.** Split with `tensor_split`, reduce-scatter, pad your piece to the length of the
#   longest for the all-gather, and afterwards cut the padding off *each* piece.
#
# For PRODUCT, is it a mistake to pad with zeros?
#
# **Predict:** two ranks hold 1, 2, 3, 4, 5 each, padded with a zero to six elements. What do they get?
#
# <details><summary>0, 0, 0, 0, 0, 0</summary>
#
# No: only elements in the same place are multiplied, and only the sixth meets a zero.
# </details>
#
# <details><summary>1, 4, 9, 16, 25, 0</summary>
#
# Yes: an element meets only those in the same place, so padding meets padding.
# </details>
#
# <details><summary>1, 4, 9, 0, 0, 0</summary>
#
# No: three elements travel together in a piece, but each is multiplied only by the one in its own place.
# </details>

# %%
def padded_product():
    padded = torch.tensor([1, 2, 3, 4, 5, 0])
    dist.all_reduce(padded, op=dist.ReduceOp.PRODUCT)
    return padded.tolist()


run(padded_product, 2)

# %% [markdown]
# It is not a mistake: padding meets padding. Only the sixth number is spoiled, and it is cut off.
#
# ## Start now, wait later
#
# The sum of 14 GB takes a while. Must the rank be idle in the meantime? No: each of PyTorch's collectives
# that you have met takes `async_op=True`. Then it returns at once, with a request like that of `isend`, and
# you can compute something else before you call `wait()`. Until then, leave `x` alone.


# %%
def start_and_wait():
    x = torch.full((2,), float(dist.get_rank() + 1))
    request = dist.all_reduce(x, async_op=True)
    meanwhile = sum(range(1000))  # anything that does not touch x
    request.wait()
    return x.tolist(), meanwhile


print(list(run(start_and_wait, 4)))

# %% [markdown]
# On gloo, the result is in `x` when `wait()` returns. **On a GPU, `wait()` promises less.** A GPU works
# through queues, called [streams](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams). Your
# program puts work into a stream and goes on. The GPU does the work of one stream in order, but different
# streams wait for one another only if they are told to. With `async_op=True`, NCCL's collectives run on a
# stream of their own, and
# [`wait()`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.Work.wait) makes the
# *current stream* wait for them, but not your program. Without `async_op` your program does not wait
# [either](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations).
#
# So when is the result ready?
#
# - For work that you put into the current stream after `wait()`: always. The GPU does it when the sum is
#   there.
# - For work on another stream: when you have told that stream to wait,
#   `other.wait_stream(torch.cuda.current_stream())`.
# - For your program, as when it stops a clock: after `torch.cuda.synchronize()`. `x.item()` and `print(x)` on
#   the current stream wait by themselves, since they copy the values to the CPU.
#
# ## Summary
#
# - **All-reduce**: every rank has an x, and every rank ends with the sum (or average, minimum, maximum,
#   product).
# - Through a root it takes only $2(n-1)$ messages, but $2(n-1)$ whole tensors go through one rank.
# - **all-reduce = reduce-scatter + all-gather.** Every rank is the root of a piece; each sends
#   $\frac{2(n-1)}{n}$ of the tensor.
# - Cut with `tensor_split`, not with `chunk`; gloo's all-gather wants pieces of one size, so pad.
# - In place: write into `x`.
# - `async_op=True` starts a collective, and `wait()` completes it. With NCCL, `wait()` holds back the
#   current stream and not your program.
#
# Back to the 14 GB of gradients. On 8 ranks, a root would receive 98 GB and send 98 GB, in every step. With
# the work shared out, each rank sends 24.5 GB and receives as much. And the averaging need not
# wait until backward has ended:
# [DistributedDataParallel](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design) starts its
# all-reduces while backward is still running (chapter [15](15_data_parallel.ipynb)).
#
# **Where else it is used:** tensor parallelism adds up partial products with it (chapter
# [17](17_sharded_matmul.ipynb)). Sharded training ([ZeRO](https://arxiv.org/abs/1910.02054)) takes the two
# stages apart, and updates the parameters in between.
#
# ### Check yourself
#
# <details><summary>Ranks 0 to 3 hold [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]. Who holds the 14 after the reduce-scatter?</summary>
#
# Rank 2: it is the sum of the elements numbered 2, which is 2 + 3 + 4 + 5.
# </details>
#
# <details><summary>Five ranks all-reduce 100 MB with point-to-point messages. How much does the busiest send, at least?</summary>
#
# 2 · 4/5 · 100 MB = 160 MB: 80 MB in the reduce-scatter and 80 MB in the all-gather. At that minimum,
# all ranks send the same amount.
# </details>
#
# <details><summary>Why does the rooted all-reduce of a large tensor get slower with more ranks, while the other hardly does?</summary>
#
# 2(n − 1) whole tensors go through the root. When each rank is the root of a piece, it sends 2(n − 1)/n of a
# tensor, which never reaches 2.
# </details>
#
# **Next:** [08 · All-to-all](08_all_to_all.ipynb): every rank has something different for every other.
