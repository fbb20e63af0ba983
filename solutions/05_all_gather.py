# %% [markdown]
# # 05 · All-gather
#
# A large model does not fit on one GPU. So *fully sharded data parallel* training
# ([FSDP](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)) leaves each rank only a
# part of every layer's weights, its *shard*. But to compute with a layer, a rank needs all of it. So just
# before, the ranks hand one another their shards, and just after, each throws away what is not its own. The
# backward pass needs the weights once more: with 80 layers, one step makes up to 160 such exchanges. How
# cheap can they be?
#
# **You will learn** to give every rank the pieces of all the others, directly and around a ring, and to say
# what the ring saves and what it costs.
#
# **You need** chapters [02](02_broadcast.ipynb) and [03](03_scatter_gather.ipynb).
#
# **Time:** 75 minutes, with 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# A gather brings all pieces to *one* rank. An **all-gather** brings them to *all* ranks. That is what the
# "all" in its name means: every rank gets the result.
#
# ![Before: rank r holds xr. After an all-gather every rank holds the list x0, x1, x2, x3; its own piece never moved](../imgs/all_gather.png)
#
# As before, a dashed frame marks what did not arrive in a message: each rank has had its own piece all
# along. No rank is special here, so there is no `src` and no `dst`.
#
# Here are four ranks, and rank $i$ holds $[i+1,\ i+1]$. Look at the *order* of what they hold afterwards:

# %%
def built_in():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((2,), rank + 1)
    parts = [torch.empty_like(x) for _ in range(n)]
    dist.all_gather(parts, x)
    return [part.tolist() for part in parts]


for r, parts in enumerate(run(built_in, 4)):
    print(f"rank {r}: {parts}")

# %% [markdown]
# Every rank holds the same list, in **rank order**: entry $j$ is what rank $j$ had. You make the list and its
# tensors beforehand, and `dist.all_gather` fills them.
#
# A second form fills one large tensor instead of a list. It is the one that FSDP calls:

# %%
def into_one_tensor():
    x = torch.full((5,), dist.get_rank() + 1)
    everything = torch.empty(5 * dist.get_world_size(), dtype=x.dtype)
    dist.all_gather_into_tensor(everything, x)
    return everything.tolist()


for r, everything in enumerate(run(into_one_tensor, 3)):
    print(f"rank {r}: {everything}")

# %% [markdown]
# Three ranks had 5 elements each, and *every* rank ended with 15.
#
# ### A list to fill
#
# Python has a short way to write a list of four things: `[torch.empty(1)] * 4`. Suppose that 0, 10, 20 and
# 30 arrive, and each is copied to its place in that list.
#
# **Predict:** what is in the list then?
#
# <details><summary>0, 10, 20, 30</summary>
#
# No: that takes four tensors, and <code>*</code> makes only one.
# </details>
#
# <details><summary>Nothing: it is an error</summary>
#
# No: a list may hold one tensor several times, and nothing warns you.
# </details>
#
# <details><summary>30, 30, 30, 30</summary>
#
# Yes: it is one tensor four times, and each piece overwrites the one before.
# </details>

# %%
parts = [torch.empty(1)] * 4  # looks like four tensors
for place in range(4):
    parts[place].copy_(torch.tensor([10.0 * place]))

print([part.item() for part in parts])
print("different tensors:", len({id(part) for part in parts}))

# %% [markdown]
# `[t] * 4` is the same tensor four times, and the list must hold four *different* ones. Write
# `[torch.empty_like(x) for _ in range(4)]`.
#
# ### Whose memory is it?
#
# Suppose every rank has a GPU of its own, and rank 1 prints its list after the call. $x_0$ came from GPU 0.
# Does its entry say `cuda:0` or `cuda:1`? And what if a rank writes to it? You need no GPU to find out.
#
# **Predict:** $x_0$ is 1, and after the call each rank $r$ multiplies its entry $x_0$ by $10^r$. What do
# four ranks find there?
#
# <details><summary>1, 10, 100, 1000</summary>
#
# Yes: each rank has changed its own copy, and no other rank notices.
# </details>
#
# <details><summary>1000 on every rank</summary>
#
# No: there is no shared entry in which the last one could win. Each rank has a copy of its own.
# </details>
#
# <details><summary>1,000,000 on every rank</summary>
#
# No: the factors never meet. Each rank multiplies a copy of its own.
# </details>

# %%
def whose_memory():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((2,), rank + 1)
    parts = [torch.empty_like(x) for _ in range(n)]
    places = [(part.data_ptr(), part.device) for part in parts]
    dist.all_gather(parts, x)
    stayed = places == [(part.data_ptr(), x.device) for part in parts]
    parts[0] *= 10**rank  # each rank changes what came from rank 0
    dist.barrier()  # until all have done so (chapter 09)
    return f"my own tensors, on my own device: {stayed}; x0 is now {parts[0].tolist()}"


for r, line in enumerate(run(whose_memory, 4)):
    print(f"rank {r}: {line}")

# %% [markdown]
# After the call, the tensors are still the ones that we made, on the device of our own `x`. An all-gather
# gives you no view of another rank's memory: it **copies** into the tensors that you have made. With GPUs,
# `torch.empty_like(x)` makes them on the device of your own `x`, so rank 1 prints `cuda:1` four times.
#
# ## The plain way: gather, then broadcast
#
# Look at the two operations side by side. They start alike. After a gather one rank has the list, after
# an all-gather all of them have it.
#
# ![Two rows. Gather: before, rank r holds xr; after, rank 1 alone holds x0, x1, x2, x3. All-gather: the same start; afterwards all four ranks hold x0, x1, x2, x3](../imgs/gather_and_all_gather.png)
#
# So a gather does the first half of the work, and a broadcast can do the rest: rank 0 collects the pieces
# and sends the whole list to the others.
#
# **Predict:** how many messages is that on 4 ranks? And how many bytes does rank 0 send, if a piece has 8
# bytes?
#
# <details><summary>6 messages, of which rank 0 sends 24 bytes</summary>
#
# No: rank 0 sends three messages, but each of them is the whole list, 32 bytes.
# </details>
#
# <details><summary>6 messages, of which rank 0 sends 96 bytes</summary>
#
# Yes: three messages go in, and three come out, each of them the whole list of 32 bytes.
# </details>
#
# <details><summary>12 messages, of which rank 0 sends 24 bytes</summary>
#
# No: 12 is a message for each ordered pair of ranks. Here every message goes to rank 0 or comes from it.
# </details>

# %%
def gather_then_broadcast(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    everything = torch.empty((n, *x.shape), dtype=x.dtype)
    if rank == 0:
        everything[0] = x
        for other in range(1, n):
            dist.recv(everything[other], other)
        for other in range(1, n):
            dist.send(everything, other)
    else:
        dist.send(x, 0)
        dist.recv(everything, 0)
    return list(everything)


def gathered_by(algorithm):
    rank = dist.get_rank()
    return [part.tolist() for part in algorithm(torch.full((2,), rank + 1.0))]


naive = run(gathered_by, 4, gather_then_broadcast)
print("rank 3 has", naive[3])
print(naive.trace)

# %% [markdown]
# It takes only $2(n-1)$ messages. But look at *who* sends: the second half comes from rank 0 alone, which
# sends twelve times as much as any other rank.
#
# ## Exercise: all_gather
#
# Return the list in rank order, on every rank, and without a root: no rank may send more than $n-1$
# pieces, where rank 0 above sends $n(n-1)$. That is the point of this exercise, and an answer with a root
# earns at most half of its points. How else you do it is up to you. $n(n-1)$ messages are enough: each of
# the $n$ ranks lacks $n-1$ pieces.
#
# Your own entry must be a copy of `x`. The built-in collectives are refused.

# %%
def all_gather(x: torch.Tensor) -> list[torch.Tensor]:
    """All x in rank order, on every rank."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    requests = []
    for k in range(1, n):
        requests.append(dist.isend(x, (rank + k) % n))
        requests.append(dist.irecv(parts[(rank - k) % n], (rank - k) % n))
    for request in requests:
        request.wait()
    return parts
    ### END SOLUTION


check(all_gather)

# %% [markdown]
# ## Around the ring
#
# In a ring, each rank talks to its two neighbours only: it sends to the right, receives from the left, and
# **passes on what has just arrived**. (The table of a passing verdict already counts it.)
#
# ![Four panels. At the start rank r holds xr. After round 1 every rank also holds its left neighbour's piece, after round 2 that of the rank before it, after round 3 every rank holds all four. Below each panel arrows lead from every rank to its right neighbour, and from the last rank to the first](../imgs/ring_all_gather.png)
#
# A solid line marks the piece that arrived last. It goes on to the right in the next round, if there is
# one. Dashed pieces stay where they are: each has been passed on already. Follow $x_0$ with your finger: it
# starts on rank 0 and reaches ranks 1, 2 and 3. After $n-1$ rounds it has been to every rank, and all the
# other pieces have travelled at the same time.
#
# **Predict:** with *5* ranks, whose pieces does rank 4 receive in rounds 1 to 4?
#
# <details><summary>Those of ranks 0, 1, 2, 3</summary>
#
# No: rank 0's piece has the farthest to go, and arrives last.
# </details>
#
# <details><summary>Those of ranks 3, 2, 1, 0</summary>
#
# Yes: first the left neighbour's own, then whatever the left neighbour received in the round before.
# </details>
#
# <details><summary>That of rank 3 each time</summary>
#
# No: rank 3 sends its own piece only once, and then passes on what has arrived.
# </details>


# %%
def whose_piece(n):
    newest = list(range(n))  # whose piece each rank received last; at first its own
    for s in range(1, n):
        newest = [newest[(r - 1) % n] for r in range(n)]
        print(f"round {s}:", ", ".join(f"rank {r} gets x{owner}" for r, owner in enumerate(newest)))


whose_piece(5)

# %% [markdown]
# Read it by columns: how does the piece that rank 4 gets change from round to round? And the one that
# rank 0 gets? Write the number of the piece as a formula in $r$, $s$ and $n$. It is also the place in the
# list where the piece belongs.
#
# ## Exercise: ring_all_gather
#
# Return the same result as before, but now only neighbours talk. It takes $n-1$ rounds, and in each of them
# every rank sends one piece, so that it sends exactly $n-1$ times the bytes of `x`.
#
# Two things to keep in mind: if every rank is blocked in `send`, no rank receives (chapter 01); and while a
# piece is being sent, nothing may be received into it.

# %%
def ring_all_gather(x: torch.Tensor) -> list[torch.Tensor]:
    """All x in rank order, on every rank, around the ring."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(1, n):
        request = dist.isend(parts[(rank - s + 1) % n], right)
        dist.recv(parts[(rank - s) % n], left)
        request.wait()
    return parts
    ### END SOLUTION


check(ring_all_gather)

# %% [markdown]
# Eight processes do not show how an algorithm grows. So `check` also runs a ring on 67 *simulated* ranks,
# as `simulate` does in chapter [02](02_broadcast.ipynb).
#
# ## What your ring did
#
# Here it is at work. The pieces have names: A0 belongs to rank 0, B0 to rank 1, and so on. Follow A0 around
# the ring:

# %%
replay(ring_all_gather, 4) if check(ring_all_gather) else None

# %% [markdown]
# The record of a run has every message, its size, and the round in which it would travel if each message
# took one unit of time. From these records we compare all three ways, on 4 ranks and on 8.
#
# **Predict:** by what factor do the bytes of the busiest rank grow?
#
# <details><summary>About two in each: twice as many ranks</summary>
#
# No: rank 0 sends more than twice as many messages, and each is twice as long.
# </details>
#
# <details><summary>More than four through rank 0, about two in the others</summary>
#
# Yes: $n(n-1)$ pieces grow from 12 to 56, and $n-1$ pieces from 3 to 7.
# </details>
#
# <details><summary>About two, but not at all on the ring</summary>
#
# No: on the ring, each rank also sends $n-1$ pieces: 3, and then 7.
# </details>

# %%
def everyone_to_everyone(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(x, (rank + k) % n)
        dist.recv(parts[(rank - k) % n], (rank - k) % n)
        request.wait()
    return parts


def compare_traffic(algorithms, n):
    for algorithm in algorithms:
        t = run(gathered_by, n, algorithm).trace.traffic
        counts = f"{t.messages:2} messages, {t.rounds:2} rounds, {t.max_sent:3} bytes at most by one"
        print(f"{algorithm.__name__:22} {counts}")


algorithms = [gather_then_broadcast, everyone_to_everyone]
if check(ring_all_gather):
    algorithms.append(ring_all_gather)
for n in (4, 8):
    print(f"{n} ranks, pieces of 8 bytes")
    compare_traffic(algorithms, n)

# %% [markdown]
# Gather-then-broadcast has the fewest messages. But one rank sends $n(n-1)$ pieces while the others wait:
# on 8 ranks, 448 bytes instead of 56. Its messages in the second half are also $n$ times as long as the
# others, which a count of rounds does not show.
#
# **What is the least?** Each rank lacks $n-1$ pieces, so it must *receive* $n-1$ times the bytes of $x$,
# whatever the algorithm. With point-to-point messages, what is received has been sent, so all ranks
# together send at least $n(n-1)$ pieces: **on average** $n-1$ each. One rank can send less if another sends
# more: above, every rank but 0 sends a single piece. On the ring and with everyone-to-everyone, *every*
# rank sends exactly the average, so no algorithm asks less of its busiest rank ([Chan and others
# 2007](https://doi.org/10.1002/cpe.1206) also give bounds for other collectives). This does not hold for a
# switch that copies one message to many ports: there, a rank could send its piece once.
#
# ## Why the ring, if everyone-to-everyone counts the same?
#
# The last two lines agree in every number. The difference is in *which wires* they use. Think of machines
# that really are wired as a ring, each with one cable to the next, with data going one way round. A message
# from rank 0 to rank 3 then goes through three cables, and occupies all three.
#
# **Predict:** on 4 ranks with pieces of 8 bytes, how many bytes pass through each cable?
#
# <details><summary>24 on the ring, 24 with everyone-to-everyone</summary>
#
# No: every rank sends 24 bytes in both, but only on the ring does each message use a single cable.
# </details>
#
# <details><summary>24 on the ring, 72 with everyone-to-everyone</summary>
#
# No: only the longest of a rank's three messages uses three cables. The others use one and two.
# </details>
#
# <details><summary>24 on the ring, 48 with everyone-to-everyone</summary>
#
# Yes: a rank's three messages use one, two and three cables. That is 48 bytes per rank, and so per cable.
# </details>

# %%
def bytes_through_cables(trace):
    n = trace.world_size
    load = [0] * n  # load[r]: bytes through the cable from r to r + 1
    for message in trace.messages:
        position = message.source
        while position != message.destination:
            load[position] += message.nbytes
            position = (position + 1) % n
    return load


for algorithm in algorithms:
    record = run(gathered_by, 4, algorithm).trace
    print(f"{algorithm.__name__:22} bytes through each cable: {bytes_through_cables(record)}")

# %% [markdown]
# Everyone-to-everyone loads each cable with $1 + 2 + \dots + (n-1) = n(n-1)/2$ pieces, the ring with only
# $n-1$, since each of its messages goes through one cable. Gather-then-broadcast loads the cables unevenly,
# most of all the one that leaves rank 0.
#
# And how many ranks send in each round?

# %%
def senders(trace):
    rounds = range(trace.traffic.rounds)
    return [len({m.source for m in trace.messages if m.start == s}) for s in rounds]


for algorithm in algorithms:
    record = run(gathered_by, 4, algorithm).trace
    print(f"{algorithm.__name__:22} ranks that send in each round: {senders(record)}")

# %% [markdown]
# Gather-then-broadcast has one message at a time. The other two keep every rank sending in every round, so
# here they are equal again; only the cables tell them apart. On the ring, no two messages share a cable in
# the same round.
#
# The ring has a price. With the $\alpha$ and $\beta$ of chapter [02](02_broadcast.ipynb), its $n-1$ rounds,
# one after the other, take $(n-1)(\alpha + b\beta)$ for pieces of $b$ bytes. How near is that to a real
# machine? In [How to Scale Your Model](https://jax-ml.github.io/scaling-book/sharding/), four TPU chips gather
# pieces of 8.4 MB over links of 45 GB/s. Three rounds of these bytes take 560 µs, and a profile shows 680.
#
# The $(n-1)\,b\beta$ cannot be avoided by a rank that receives one message at a time, as we have just seen.
# (If it can receive from both neighbours at once, half of each piece goes to the left, and the bytes take half
# as long.) The $(n-1)\,\alpha$ can be avoided. For many ranks and *small* pieces, algorithms with
# $\lceil \log_2 n \rceil$ rounds win. [Thakur, Rabenseifner and Gropp
# 2005](https://doi.org/10.1177/1094342005051521) describe them, and say that MPICH keeps the ring for longer
# messages. Chapter [13](13_cost_models.ipynb) works out where trees and rings cross.
#
# A ring has no central *bottleneck*. Does that make it robust?
#
# **Predict:** rank 2 of 4 leaves the ring after one round. Which ranks get stuck?
#
# <details><summary>Rank 3, its right neighbour</summary>
#
# No: rank 3 waits for it, but it is not the only one.
# </details>
#
# <details><summary>Ranks 1 and 3, its two neighbours</summary>
#
# No: these wait for rank 2 itself, and then rank 0 waits for rank 3.
# </details>
#
# <details><summary>Ranks 0, 1 and 3, all the others</summary>
#
# Yes: 1 and 3 wait for rank 2 itself, and rank 0, which never talks to it, waits for rank 3.
# </details>

# %%
def one_leaves(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    piece = x
    for s in range(1, n):
        if rank == 2 and s == 2:
            return
        received = torch.empty_like(x)
        request = dist.isend(piece, (rank + 1) % n)
        dist.recv(received, (rank - 1) % n)
        request.wait()
        piece = received


run(one_leaves, 4, torch.ones(1), may_fail=True)

# %% [markdown]
# Every rank needs every piece, so one dead rank stops any all-gather, whatever the algorithm. On a ring it
# also blocks other ranks' pieces, which must pass through it.
#
# ## Summary
#
# - **All-gather**: every rank ends with the pieces of all ranks, in rank order.
# - It copies into tensors that each rank has made: $n$ different ones, on the rank's own device.
# - Gather and broadcast do it with $2(n-1)$ messages, but rank 0 sends $n(n-1)$ pieces.
# - The **ring** takes $n-1$ rounds: send to the right what has just arrived from the left. In round $s$ the
#   piece of rank $(r-s) \bmod n$ arrives.
# - Each rank sends $n-1$ pieces. With point-to-point messages, the busiest rank of any algorithm sends at
#   least as many.
# - Only neighbours talk, and no two messages share a cable in a round. The price is $n-1$ latencies.
#
# Back to FSDP. If a layer has $S$ bytes, a rank holds $S/n$ of them, and to gather the layer it sends
# $\frac{n-1}{n} S$ and receives as much. On many ranks that is nearly the whole layer, and more ranks do not
# make it less. If forward and backward each gather every layer, that comes to nearly twice the model, on
# every rank. With point-to-point messages, no all-gather sends less in all. But it can be hidden: FSDP
# [gathers the next layer while this one computes](https://docs.pytorch.org/docs/stable/notes/fsdp.html),
# and chapter [16](16_scale_math.ipynb) works out when that is enough.
#
# **Where else it is used:** tensor and sequence parallelism put slices of activations together (chapter
# [17](17_sharded_matmul.ipynb)); a loss or a metric may need the embeddings of all ranks; and the second
# half of the ring all-reduce is an all-gather (chapter [11](11_ring_all_reduce.ipynb)).
#
# ### Check yourself
#
# <details><summary>8 ranks, pieces of 1 MB, a ring. How much does each rank send, and how large is the result on each?</summary>
#
# Each sends 7 MB. The result is 8 MB, on every rank.
# </details>
#
# <details><summary>On a ring of 6, whose piece does rank 1 receive in round 3?</summary>
#
# (1 − 3) mod 6 = 4: that of rank 4.
# </details>
#
# <details><summary>Is an all-gather the same as n gathers, one to each rank?</summary>
#
# In its result, yes, and n gathers send n(n − 1) messages, like the ring. But in each gather all of them
# go to the same rank, which can take only one at a time. So n gathers, one after the other, need more
# than n − 1 rounds.
# </details>
#
# **Next:** [06 · Reduce-scatter](06_reduce_scatter.ipynb): the same ring, adding up as it goes.
