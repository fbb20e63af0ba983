# %% [markdown]
# # 07 · All-reduce
#
# **You will learn** to give *every* rank the sum of all, to see why the obvious way is slow, and the
# one identity that carries the rest of this course: an all-reduce is a reduce-scatter followed by
# an all-gather.
#
# **You need** chapters [02](02_broadcast.ipynb), [04](04_reduce.ipynb) and
# [06](06_reduce_scatter.ipynb).
#
# **Time:** 70 minutes, and 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, run

# %% [markdown]
# ## Why
#
# In data parallel training every rank computes gradients from its own part of the batch. Before the
# optimizer step all of them need the *average*, the same on every rank, or the copies of the model
# drift apart. A model of 7 billion parameters has 14 GB of gradients in bfloat16, in every step, so
# it matters how the sum is made.
#
# ## What it does
#
# A reduce gives the sum to one rank. An **all-reduce** gives it to all of them. ("All-" always
# means: everyone gets the result.)
#
# ![Before: four ranks hold A, B, C, D. After an all-reduce every rank holds A+B+C+D](../imgs/all_reduce.png)
#
# **Predict:** four ranks hold [1, 1], [2, 2], [3, 3] and [4, 4]. What does each rank hold after an
# all-reduce with SUM? And what is their average?

# %%
def built_in_all_reduce():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((2,), float(rank + 1))
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    return x.tolist(), (x / n).tolist()


for rank, (total, average) in enumerate(run(built_in_all_reduce, 4)):
    print(f"rank {rank}: SUM {total}, AVG {average}")

# %% [markdown]
# We took the average as a sum and one division. There is `dist.ReduceOp.AVG` too, but whether gloo
# knows it depends on the version of PyTorch; sum and divide works everywhere.
#
# Three ranks with five ones, five twos and five threes:

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
# The picture leaves the other ranks' tensors alone. The
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.reduce)
# promises a result on the destination and says nothing of the others. Chapter 04 has shown what that
# means. **Predict:** after `dist.reduce` on gloo, does every other rank still have its own `x`?

# %%
predict("")

# %%
def still_its_own():
    x = torch.tensor([float(dist.get_rank() + 1)])
    own = x.clone()
    dist.reduce(x, dst=0)
    return torch.equal(x, own)


kept = list(run(still_its_own, 4))
print("every rank but 0 still has its own x:", all(kept[1:]))

# %% [markdown]
# gloo used some of those tensors for partial sums. Keep a copy, and read `x` on the destination
# only. A broadcast afterwards repairs everything, because it overwrites `x` on all other ranks:

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
# That was already an all-reduce:
#
# ```
# if I am the root:
#     for every other rank: receive its tensor into a buffer, combine the buffer into x
#     for every other rank: send x
# else:
#     send x to the root
#     receive x from the root
# ```
#
# Each of the $n-1$ others sends once and is sent to once: $2(n-1)$ messages.
#
# ## Exercise: all-reduce through a root
#
# Write it out of `send` and `recv` (or their relatives), for the five operations. Which rank is the
# root is your choice. The result is in `x` itself, on every rank; nothing is returned.
#
# The order matters: no rank can be told the result before the root has heard them all. And AVG
# needs one division. Where?

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
    for dst in range(1, n):
        dist.send(x, dst)
    ### END SOLUTION


rooted = check(all_reduce_rooted)
rooted

# %% [markdown]
# ## Correct, and slow
#
# **Predict:** with 8 ranks and 840 numbers each, how many numbers pass through the root, in and
# out together? How many through any other rank?

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
            f" busiest rank {passed[-1]} numbers, idlest {passed[0]}"
        )

# %% [markdown]
# (The numbers are those of the simple way above. If you wrote a tree or a chain, yours differ.)
#
# Everything goes through one rank. It receives $n-1$ full tensors, one after the other, and then
# sends $n-1$. In that time each of the others sends one and receives one, and waits. Twice the
# ranks, twice the queue: adding machines makes it *slower*.
#
# Trees help with the rounds: $\lceil \log_2 n \rceil$ up and $\lceil \log_2 n \rceil$ down. But each
# message is still the whole tensor, and half of the ranks do nothing but one send and one receive.
#
# ## A better idea: everyone is the root of a piece
#
# Why should one rank add up everything? Cut the tensor into $n$ pieces, and let rank $r$ add up
# piece $r$. That is a **reduce-scatter**. Then each rank sends its piece to all others: that is an
# **all-gather**.
#
# ![Three stages on four ranks. First each rank holds four pieces of its own letter, a0 to a3, b0 to b3, c0 to c3, d0 to d3. After a reduce-scatter rank r holds the sum of all pieces r. After an all-gather every rank holds all four sums](../imgs/all_reduce_identity.png)
#
# **all-reduce = reduce-scatter + all-gather.** Remember this line: the ring of chapter 11, data
# parallel training and sharded training are built on it.
#
# **Predict:** ranks 0 to 3 hold [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5] and [3, 4, 5, 6]. What does
# each rank hold after the reduce-scatter, and after the all-gather?

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


for rank, (mine, gathered, built_in) in enumerate(run(two_stages, 4)):
    print(f"rank {rank}: {mine:2} -> {gathered}, all_reduce {built_in}")

# %% [markdown]
# ## What it costs
#
# **Predict:** how many times the whole tensor does one rank send? Is it the same on 2 ranks as on 8?
#
# Here both stages are written with sends and receives, for SUM: rank $r$
# collects piece $r$ from everyone, and then sends the sum to everyone.

# %%
predict("")

# %%
def everyone_is_a_root(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(n) if other != rank]
    pieces = list(x.tensor_split(n))

    # reduce-scatter: my piece j goes to rank j
    sends = [dist.isend(pieces[other], other) for other in others]
    mine, buffer = pieces[rank].clone(), torch.empty_like(pieces[rank])
    for other in others:
        dist.recv(buffer, other)
        mine += buffer
    for request in sends:
        request.wait()

    # all-gather: my sum goes to everyone
    sends = [dist.isend(mine, other) for other in others]
    for other in others:
        dist.recv(pieces[other], other)
    for request in sends:
        request.wait()
    pieces[rank].copy_(mine)
    return x[0].item(), x[-1].item()


for n in (2, 3, 4, 8):
    result = run(everyone_is_a_root, n, torch.ones(840))
    elements = result.trace.max_sent_elements
    right = set(result) == {(n, n)}
    print(f"{n} ranks: right: {right}, one rank sends {elements:4} = {elements / 840:.3f} × 840")

# %% [markdown]
# It is 1 with two ranks, and comes close to 2 with many. There are two phases in it:
#
# - in the reduce-scatter a rank sends every piece but its own: $\frac{n-1}{n}$ of the tensor;
# - in the all-gather it sends its own sum to $n-1$ ranks, $\frac{1}{n}$ of the tensor each: again
#   $\frac{n-1}{n}$.
#
# Together $\frac{2(n-1)}{n}$, which approaches 2 from below. (It counts what a rank *sends*; it
# receives as much.) If the ranks do the adding and talk in point-to-point messages, no all-reduce can
# move less through its busiest rank, as
# [Patarasuk and Yuan (2009)](https://doi.org/10.1016/j.jpdc.2008.09.002) prove. Switches that add
# are outside that proof: with them a rank need send its tensor only once and receive the sum once
# ([SHARP](https://doi.org/10.1109/COMHPC.2016.006) on InfiniBand,
# [NVLS](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable) on
# NVLink). The rooted one moves
# $n-1$ whole tensors out of the root and as many into it: with 8 ranks four times as much.
#
# One thing got worse: there are $2n(n-1)$ messages now, small ones. In the terms of chapter 02, the
# bytes ($\beta$) are as few as they can be and the start-ups ($\alpha$) are many. The ring of chapter
# 11 keeps the factor and needs only neighbours.
#
# ## Any length
#
# 840 is a friendly number. What if $n$ does not divide the length?
#
# **Predict:** into how many pieces does `chunk(4)` cut 9 elements?

# %%
nine = torch.arange(9)
print("chunk(4):       ", [len(piece) for piece in nine.chunk(4)])
print("tensor_split(4):", [len(piece) for piece in nine.tensor_split(4)])

# %% [markdown]
# With `chunk` all is well whenever $n$ divides the length, so the mistake is easy to miss. It
# rounds the size of a piece *up* first, and may then run out of elements: rank 3 has no piece, and
# `pieces[3]` is an error. `tensor_split` always gives $n$ pieces, some one element longer.
#
# But then pieces have different sizes. Does gloo take those?

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

failure = run(uneven_all_gather, 4, may_fail=True).failure
print("all_gather:    ", failure.diagnosis)
print("it says 'invalid tensor size':", "invalid tensor size" in failure.message)

# %% [markdown]
# Its reduce-scatter takes them. Its all-gather raises an error that says "invalid tensor size".
# There are two ways out.
#
# - **Pad the whole.** Copy the elements into a longer tensor, up to the next multiple of $n$, and
#   cut the padding off at the end. All pieces are of one size.
# - **Pad the pieces.** Split with `tensor_split`, reduce-scatter, pad your piece to the longest for
#   the all-gather, and cut the padding off *each* piece when it has come.
#
# **Predict:** for PRODUCT, is it a mistake to pad with zeros?

# %%
def padded_product():
    n = dist.get_world_size()
    x = torch.tensor([1, 2, 3, 4, 5])
    padded = torch.zeros(6, dtype=x.dtype)
    padded[:5] = x
    mine = torch.empty(6 // n, dtype=x.dtype)
    pieces = list(padded.tensor_split(n))  # views of padded
    dist.reduce_scatter(mine, pieces, op=dist.ReduceOp.PRODUCT)
    dist.all_gather(pieces, mine)  # so this fills padded
    return padded.tolist()


run(padded_product, 2)

# %% [markdown]
# It is not. Elements are combined with those at the same place on other ranks and with nothing
# else, so padding meets padding. Only the last number is spoiled, and that is cut off.
#
# ## In place, in two dimensions too
#
# "In place" means that the caller's own `x` holds the result. Two traps:

# %%
def rename(x):
    x = x * 10  # a new tensor with an old name


def write(x):
    x.copy_(x * 10)


matrix = torch.ones(2, 2)
rename(matrix)
print("after rename:", matrix.flatten().tolist())
write(matrix)
print("after write: ", matrix.flatten().tolist())

# %% [markdown]
# The other trap: `flatten()` makes a view where it can and a copy where it must, and padding always
# copies. Do not rely on it. Write the result back: `x.copy_(flat.view_as(x))`.
#
# ## Exercise: all-reduce out of two stages
#
# Now `dist.reduce_scatter` and `dist.all_gather` are allowed, and so are their siblings that take
# one big tensor instead of a list. `dist.all_reduce` is not. `x` has any length, 0 included, and one
# or two dimensions; it is worked on as one long row of elements.
#
# For AVG, take SUM and divide: once.

# %%
def all_reduce_sharded(x: torch.Tensor, op: dist.ReduceOp) -> None:
    """x becomes the reduction of everyone's x: a reduce-scatter, then an all-gather."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    size = -(-x.numel() // n)  # rounded up
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    pieces = list(padded.tensor_split(n))
    mine = torch.empty_like(pieces[0])
    dist.reduce_scatter(mine, pieces, op=dist.ReduceOp.SUM if average else op)
    if average:
        mine /= n
    dist.all_gather(pieces, mine)
    x.copy_(padded[: x.numel()].view_as(x))
    ### END SOLUTION


sharded = check(all_reduce_sharded)
sharded

# %% [markdown]
# Nine elements on four ranks, yours beside the built-in one:

# %%
def mine_and_theirs():
    mine = torch.arange(9).view(3, 3) + dist.get_rank()
    theirs = mine.clone()
    all_reduce_sharded(mine, dist.ReduceOp.SUM)
    dist.all_reduce(theirs)
    return mine.flatten().tolist(), torch.equal(mine, theirs)


if sharded:
    for rank, (mine, equal) in enumerate(run(mine_and_theirs, 4)):
        print(f"rank {rank}: {mine}, equal: {equal}")

# %% [markdown]
# ## Start now, wait later
#
# Every collective takes `async_op=True`. Then it returns at once, with a request like that of `isend`,
# and you may compute something else before you `wait()`. Until then, leave `x` alone.


# %%
def start_and_wait():
    x = torch.full((2,), float(dist.get_rank() + 1))
    request = dist.all_reduce(x, async_op=True)
    meanwhile = sum(range(1000))  # anything that does not touch x
    request.wait()
    return x.tolist(), meanwhile


print(list(run(start_and_wait, 4)))

# %% [markdown]
# On gloo, `wait()` returns when the result is in `x`. **On a GPU it means less.** A GPU works through
# queues, called *streams*: your program puts work in and goes on. With `async_op=True` NCCL's
# collectives run on a stream of their own, and `wait()` only makes the *current stream* wait for them.
# Your program does not wait, with or without `async_op`
# ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations)).
#
# For work that follows on the same stream that is enough: it starts when the sum is there. On another
# stream, make that stream wait too. And if *your program* has to know, because it measures time, call
# `torch.cuda.synchronize()`. Printing or `.item()` on the current stream waits by itself, since it
# copies the value to the CPU.
#
# ## Summary
#
# - **All-reduce**: everyone has an x, everyone ends with the sum (or average, minimum, maximum,
#   product).
# - Through a root: $2(n-1)$ messages, right, and slow, because $2(n-1)$ whole tensors pass through
#   one rank.
# - **all-reduce = reduce-scatter + all-gather.** Every rank is the root of a piece; each sends
#   $\frac{2(n-1)}{n}$ of the tensor.
# - Cut with `tensor_split`, not with `chunk`; gloo's all-gather wants pieces of one size, so pad.
# - In place: write into `x`.
# - `async_op=True` starts a collective, `wait()` completes it; on NCCL `wait()` holds back the
#   current stream and not your program.
#
# Back to the 14 GB of gradients: on 8 ranks the root would send and receive 98 GB each; with the work
# shared out, every rank sends and receives 24.5 GB.
#
# **Where this is used:** the averaging of gradients in data parallel training is an all-reduce.
# [DistributedDataParallel](https://docs.pytorch.org/docs/stable/notes/ddp.html) starts them while
# backward is still running. Sharded training, as in
# [ZeRO](https://arxiv.org/abs/1910.02054), takes the two stages apart and does work in between.
#
# ### Check yourself
#
# <details><summary>Ranks 0 to 3 hold [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]. Who holds the 14 after the reduce-scatter?</summary>
#
# Rank 2: it is the sum of everyone's element 2, 2 + 3 + 4 + 5.
# </details>
#
# <details><summary>Five ranks all-reduce 100 MB with point-to-point messages. How much does the busiest send, at least?</summary>
#
# With an even load 2 · 4/5 · 100 MB = 160 MB: 80 MB in the reduce-scatter and 80 MB in the
# all-gather.
# </details>
#
# <details><summary>Why does the rooted all-reduce get slower with more ranks, and the other hardly?</summary>
#
# Through the root pass 2(n − 1) whole tensors. When everyone is the root of a piece, a rank sends
# 2(n − 1)/n of a tensor, which never reaches 2.
# </details>
#
# **Next:** [08 · All-to-all](08_all_to_all.ipynb), where every rank has something different for every
# other.
