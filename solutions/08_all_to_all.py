# %% [markdown]
# # 08 · All-to-all
#
# In a mixture-of-experts model, only a few of many small networks, the *experts*, work on each token, and the
# experts live on different ranks. So in every such layer, every rank has tokens for every other rank, and
# wants them back afterwards. None of the collectives so far does just that.
#
# **You will learn** to let every rank send something different to every other rank, in an order in which no
# rank has to queue, and to do it when the pieces differ in size. At the end you send tokens to experts and
# back.
#
# **You need** chapters [01](01_point_to_point.ipynb) to [03](03_scatter_gather.ipynb), and
# [05](05_all_gather.ipynb).
#
# **Time:** 95 minutes, with 2 exercises.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Every rank has something for every other
#
# In a scatter, one rank has a piece for each rank. In an **all-to-all**, *every* rank does: rank $r$ holds a
# list of $n$ chunks, and chunk $j$ is meant for rank $j$.
#
# ![Before: rank 0 holds A0 to A3, rank 1 holds B0 to B3, rank 2 C0 to C3, rank 3 D0 to D3. After: rank 0 holds A0, B0, C0, D0, rank 1 holds A1, B1, C1, D1, and so on. A0, B1, C2 and D3 stay where they are](../imgs/all_to_all.png)
#
# Nothing is combined, and nothing is handed to more than one rank. Each chunk goes to one place, and there
# are as many numbers afterwards as before. A dashed chunk is already where it belongs, and does not travel.
#
# **Predict:** on 4 ranks, rank $r$ holds $10r, 10r+1, 10r+2, 10r+3$. What does rank 1 hold after an
# all-to-all?
#
# <details><summary>0, 10, 20, 30</summary>
#
# No: these are the chunks with number 0, and they go to rank 0.
# </details>
#
# <details><summary>1, 11, 21, 31</summary>
#
# Yes: one chunk from each rank, the one with number 1.
# </details>
#
# <details><summary>10, 11, 12, 13</summary>
#
# No: of these, only 11 is meant for rank 1. The others leave it.
# </details>

# %%
def built_in():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = 10 * rank + torch.arange(n)
    arrived = torch.empty_like(mine)
    dist.all_to_all_single(arrived, mine)
    return mine.tolist(), arrived.tolist()


rows = run(built_in, 4)
for r, (before, after) in enumerate(rows):
    print(f"rank {r}: {before} → {after}")

# %% [markdown]
# Write the lists of all ranks one below the other, and you see a matrix. Rank $r$ begins with *row* $r$
# and ends with *column* $r$: **an all-to-all transposes** the matrix of chunks.

# %%
before = torch.tensor([row for row, _ in rows])
after = torch.tensor([row for _, row in rows])
print("a transpose:", torch.equal(after, before.T))

# %% [markdown]
# The chunks on its diagonal do not travel.
#
# PyTorch has two forms. `dist.all_to_all_single` takes one tensor and cuts it along its first dimension;
# `dist.all_to_all` takes lists. For years gloo had only the first: with older versions of PyTorch,
# `dist.all_to_all` fails with "does not support alltoall"
# ([the request](https://github.com/pytorch/pytorch/issues/88245),
# [the change](https://github.com/pytorch/pytorch/pull/165435)). So on gloo `all_to_all_single` is the safe
# choice, and the one that this chapter uses.
#
# ## It is not an all-gather
#
# There is a tempting shortcut: send *all* your chunks to every rank, as in an all-gather, and let each rank
# pick what is meant for it.
#
# **Predict:** is the result right on 4 ranks, and how much is sent?
#
# <details><summary>It is right, and four times as much is sent as needed</summary>
#
# Yes: each message carries four chunks, and the receiver needs one of them.
# </details>
#
# <details><summary>It is right, and no more is sent than needed</summary>
#
# No: there are as many messages as before, but each carries all four chunks of its sender.
# </details>
#
# <details><summary>It is wrong, since a rank cannot tell which chunk is its own</summary>
#
# No: it can. On rank r it is chunk r of each list.
# </details>

# %%
def everything_to_every_rank(length):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.full((n, length), float(rank))
    boxes = [torch.empty_like(mine) for _ in range(n)]
    boxes[rank].copy_(mine)
    requests = []
    for other in range(n):
        if other != rank:
            requests += [dist.isend(mine, other), dist.irecv(boxes[other], other)]
    for request in requests:
        request.wait()
    return [box[rank, 0].item() for box in boxes]


found = run(everything_to_every_rank, 4, 100)
print("rank 1 holds a chunk of each of", found[1])
print("bytes in all:", found.trace.traffic.bytes)
print("needed:      ", 4 * 3 * 100 * 4, "(4 ranks, 3 chunks that travel, 100 numbers, 4 bytes each)")

# %% [markdown]
# In an all-gather every rank needs everything; here each chunk is for one rank only, so $n$ times as many
# bytes were sent as needed. (Where ranks are wired as a ring with traffic both ways, chunks pass through
# other ranks, and an all-gather takes only
# [four times as long](https://jax-ml.github.io/scaling-book/sharding/) as an all-to-all.)
#
# And mind the last factor above: a number of *elements* becomes a number of bytes only when you multiply it
# by the size of one element.

# %%
def swap_pair(dtype):
    mine = torch.ones(6, dtype=dtype)
    theirs = torch.empty_like(mine)
    request = dist.isend(mine, 1 - dist.get_rank())
    dist.recv(theirs, 1 - dist.get_rank())
    request.wait()


for dtype in (torch.bfloat16, torch.float32, torch.int64):
    sent = run(swap_pair, 2, dtype).trace.traffic.max_sent
    print(f"6 elements of {str(dtype)[6:]:8} are {sent} bytes")

# %% [markdown]
# ## Who sends to whom first?
#
# Every rank sends $n-1$ chunks and receives $n-1$. If it sends one chunk and receives one at a time, that
# takes at least **$n-1$ rounds**.
#
# A blocking send cannot come first on every rank, as you know from chapter [01](01_point_to_point.ipynb): all
# would be in `send`, and none would receive. So use `isend`. The plain way is a loop over the ranks, from 0 to
# the last.
#
# **Predict:** on 4 ranks, all send to rank 0 first, then to rank 1, and so on. How many rounds does it take?
# (The fewest possible are 3.)
#
# <details><summary>3</summary>
#
# No: at first three ranks send to rank 0, which takes one message at a time.
# </details>
#
# <details><summary>5</summary>
#
# Yes: the queue at rank 0 costs two more rounds. When one rank gets through, the others still wait.
# </details>
#
# <details><summary>12</summary>
#
# No: that would be all messages one after the other. Messages to different ranks travel together.
# </details>

# %%
def zero_first():
    rank, n = dist.get_rank(), dist.get_world_size()
    outgoing = [torch.full((2,), 10.0 * rank + j) for j in range(n)]
    incoming = [torch.empty(2) for _ in range(n)]
    requests = []
    for peer in range(n):
        if peer != rank:
            requests.append(dist.isend(outgoing[peer], peer))
            requests.append(dist.irecv(incoming[peer], peer))
    for request in requests:
        request.wait()


def show_rounds(trace):
    for number in range(trace.traffic.rounds):
        pairs = [f"{m.source}→{m.destination}" for m in trace.messages if m.start == number]
        print(f"  round {number + 1}: {'  '.join(pairs)}")


show_rounds(run(zero_first, 4).trace)

# %% [markdown]
# Each message counts as one unit of time, and every rank sends one and receives one at a time, as in the
# model of [Thakur, Rabenseifner and Gropp, 2005](https://doi.org/10.1177/1094342005051521). The grader adds
# one assumption of its own: messages leave a rank in the order in which they were started. In the first
# round three ranks want to send to rank 0, which takes one message. The other two ranks wait, and their
# messages for other ranks wait behind. In four of the five rounds only two messages travel, where four
# could.
#
# On the right is an order without a queue:
#
# ![Four ranks in a row. On the left all send to rank 0 first: five rounds, four of them with only two arrows. On the right peers rotate: three rounds of four arrows each](../imgs/all_to_all_rounds.png)
#
# In each of its rounds, whom does rank 2 send to, and whom does it receive from? Are they the same rank?
#
# ## Exercise: all_to_all
#
# On rank $r$, return a list whose entry $j$ is rank $j$'s `chunks[r]`. All chunks have one shape and dtype.
# The input stays as it is, and your own chunk in the result is a copy. It takes $n(n-1)$ messages, in $n-1$
# rounds, and each chunk travels once. Continue the picture to $n$ ranks.

# %%
def all_to_all(chunks: list[torch.Tensor]) -> list[torch.Tensor]:
    """Entry j of the result is rank j's chunks[rank]."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [torch.empty_like(chunk) for chunk in chunks]
    result[rank].copy_(chunks[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[dst], dst)
        dist.recv(result[src], src)
        request.wait()
    return result
    ### END SOLUTION


check(all_to_all)

# %% [markdown]
# ### Rotate the peers
#
# In step $s$ rank $r$ sends to $(r+s) \bmod n$ and receives from $(r-s) \bmod n$. In each step all targets are
# different, so no rank waits:

# %%
def show_rotation(n):
    for step in range(1, n):
        pairs = [f"{rank}→{(rank + step) % n}" for rank in range(n)]
        print(f"  round {step}: {'  '.join(pairs)}")


show_rotation(4)
for n in (2, 3, 4, 5, 8):
    naive = run(zero_first, n).trace.traffic.rounds
    print(f"{n} ranks: {naive:2} rounds with rank 0 first, {n - 1} with rotating peers")

# %% [markdown]
# If you *send* to the right, what you *receive* comes from the left. It may seem more natural to receive from
# $(r+s) \bmod n$ as well, as if two ranks shook hands. But in this step the rank that you send to sends to
# another one (unless $2s = n$).
#
# ### Handshakes
#
# There is a schedule in which ranks do meet in pairs: in step $s$ rank $r$ trades with rank $r \oplus s$
# (exclusive or of the bits).
#
# **Predict:** for which $n$ does every rank meet every other?
#
# <details><summary>For every n</summary>
#
# No: on 3 ranks, rank 1 should meet rank 3 in step 2, and there is none.
# </details>
#
# <details><summary>For every even n</summary>
#
# No: on 6 ranks, rank 2 should meet rank 6 in step 4, and there is none.
# </details>
#
# <details><summary>For powers of two</summary>
#
# Yes: there, flipping bits of a rank's number always gives the number of a rank.
# </details>

# %%
for n in (2, 3, 4, 6, 8):
    met = {(r, r ^ s) for r in range(n) for s in range(1, n) if r ^ s < n}
    missing = [(a, b) for a in range(n) for b in range(a + 1, n) if (a, b) not in met]
    print(f"n = {n}: pairs that never meet: {missing or 'none'}")

# %% [markdown]
# Unless $n$ is a power of two, some pairs never meet. And with an odd $n$, no schedule of pairs can be as
# fast as the rotation, since in every round one rank has no partner.
#
# ### There and back
#
# What does each rank hold after *two* all-to-alls in a row? Think of the matrix.

# %%
def there_and_back():
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = [torch.tensor([10 * rank + j]) for j in range(n)]
    once = all_to_all(chunks)
    twice = all_to_all(once)
    return torch.cat(once).tolist(), torch.cat(twice).tolist()


if check(all_to_all):
    for r, (once, twice) in enumerate(run(there_and_back, 3)):
        print(f"rank {r}: once {once}, twice {twice}")

# %% [markdown]
# Transpose twice and you are back where you started. So the way back is the same function again. We shall
# need that soon.
#
# ### Fewer rounds, more bytes: Bruck
#
# $n-1$ rounds cost $n-1$ latencies $\alpha$, whatever the size. With tiny chunks on many ranks, that is
# nearly all of the time. The algorithm of [Bruck and others (1997)](https://doi.org/10.1109/71.642949) takes
# only $\lceil \log_2 n \rceil$ rounds: chunks for different ranks travel together, and are passed on.
#
# Each chunk has some distance to go to the right. Write it as a sum of powers of two, such as 5 = 1 + 4. In
# the round with step $1, 2, 4, \dots$ each chunk moves on by that step if its sum contains it, and all those
# that leave a rank go in one message. A chunk with distance 5 travels twice.
#
# **Predict:** how many chunks does each of 8 ranks send now, where the rotation sends 7?
#
# <details><summary>3, one in each round</summary>
#
# No: there are three rounds, but all chunks that move on in a round go in one message.
# </details>
#
# <details><summary>7, as with the rotation</summary>
#
# No: a chunk whose distance is a sum of two or three powers of two travels as many times.
# </details>
#
# <details><summary>12, four in each round</summary>
#
# Yes: of the distances 0 to 7, four contain a given power of two.
# </details>

# %%
def bruck(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    by_distance = torch.stack([chunks[(rank + d) % n] for d in range(n)])
    step = 1
    while step < n:
        moving = [d for d in range(n) if d & step]
        outgoing = by_distance[moving]
        incoming = torch.empty_like(outgoing)
        request = dist.isend(outgoing, (rank + step) % n)
        dist.recv(incoming, (rank - step) % n)
        request.wait()
        by_distance[moving] = incoming
        step *= 2
    return [by_distance[(rank - source) % n] for source in range(n)]


def numbers_by_bruck():
    rank, n = dist.get_rank(), dist.get_world_size()
    result = bruck([torch.tensor([10.0 * rank + j]) for j in range(n)])
    return torch.cat(result).tolist()


for n in (4, 5, 8, 16):
    result = run(numbers_by_bruck, n)
    right = all(row == [10.0 * j + r for j in range(n)] for r, row in enumerate(result))
    t = result.trace.traffic
    print(
        f"{n:2} ranks: right {right}, {t.messages:2} messages, {t.rounds} rounds,"
        f" {t.max_sent // 4:2} chunks sent by a rank (rotation: {n - 1:2} rounds, {n - 1:2} chunks)"
    )

# %% [markdown]
# Watch it on four ranks. As before, chunk $j$ of rank $r$ is the number $10r + j$. Which way does 3 take, from
# rank 0 to rank 3?

# %%
replay(numbers_by_bruck, 4)

# %% [markdown]
# Its distance is 3 = 1 + 2. So round 1 takes it to rank 1, together with 1, and round 2 on to rank 3.
#
# Fewer rounds, more bytes: where $n$ is a power of two, half of the $n$ distances contain a given step, so
# a rank sends $\frac{n}{2}$ chunks in each round. With $b$ bytes a chunk it takes
# $\log_2 n \cdot (\alpha + \frac{n}{2} b \beta)$, where the rotation takes $(n-1)(\alpha + b\beta)$. For
# small $b$ Bruck's way is faster, for large $b$ the rotation. (Clusters save latencies with
# two levels, inside machines and between them: chapter [28](28_expert_parallel.ipynb).)
#
# As an answer to the exercise above it would not pass: there, each chunk may travel only once.
#
# ## The same tensor, cut another way
#
# A 4 × 4 matrix of the numbers 0 to 15 is spread over 2 ranks, cut by rows. The next step of a program needs it
# cut by columns. No rank needs all of it, and an all-to-all moves just what has to move: each rank cuts its
# rows into blocks of columns, and sends each rank its block.
#
# **Predict:** how many of the 16 numbers travel?
#
# <details><summary>16: the whole matrix is cut another way</summary>
#
# No: a rank keeps what is in its rows before and in its columns afterwards.
# </details>
#
# <details><summary>8: each rank keeps half of what it has</summary>
#
# Yes: each has two blocks. One stays where it is, the other goes to the other rank.
# </details>
#
# <details><summary>4: only the corners change places</summary>
#
# No: two of the four blocks change places, and each has four numbers.
# </details>

# %%
def rows_to_columns():
    rank, n = dist.get_rank(), dist.get_world_size()
    whole = torch.arange(16).reshape(4, 4)
    my_rows = whole.chunk(n, dim=0)[rank]
    blocks = [block.contiguous() for block in my_rows.chunk(n, dim=1)]
    return my_rows.tolist(), torch.cat(all_to_all(blocks), dim=0).tolist()


if check(all_to_all):
    moved = run(rows_to_columns, 2)
    for r, (rows_of, columns_of) in enumerate(moved):
        print(f"rank {r}: rows {rows_of} → columns {columns_of}")
    print("numbers that travelled:", moved.trace.traffic.bytes // 8)

# %% [markdown]
# The numbers 2, 3, 6, 7 and 8, 9, 12, 13 travel, and the blocks on the diagonal stay. Attention over a
# split sequence does this to go from a cut along the sequence to a cut by heads, and back
# ([DeepSpeed-Ulysses](https://arxiv.org/abs/2309.14509)). A distributed Fourier transform does it between
# its dimensions.
#
# ## Pieces of different sizes
#
# Tokens choose their experts, so a rank has many tokens for some ranks and few for others. Let it have
# `counts[j]` rows for rank $j$, which may be 0. The rows are in one tensor, sorted by destination.
#
# A receive needs a tensor of the right size. Suppose that a rank expects to get from another rank as many
# rows as it sends there. Here rank 0 sends 3 rows to rank 1, which has 2 rows for rank 0:

# %%
def expects_what_it_sends():
    counts = [[1, 3], [2, 1]][dist.get_rank()]
    if dist.get_rank() == 0:
        dist.send(torch.ones(counts[1]), 1)
    else:
        dist.recv(torch.empty(counts[0]), 0)  # as many as rank 1 has for rank 0


run(expects_what_it_sends, 2, may_fail=True)

# %% [markdown]
# 3 rows arrive where rank 1 has made room for 2. `counts` says what a rank *sends*. Only the senders know
# what will *arrive*, so they have to say so first. That is itself an all-to-all, in which each chunk is one
# number: rank $r$ knows row $r$ of the matrix of counts, and needs column $r$.

# %%
def exchange_counts():
    counts = [[1, 3, 0], [2, 1, 1], [0, 4, 0]][dist.get_rank()]
    arriving = torch.empty(3, dtype=torch.int64)
    dist.all_to_all_single(arriving, torch.tensor(counts))
    return counts, arriving.tolist()


for r, (counts, arriving) in enumerate(run(exchange_counts, 3)):
    print(f"rank {r} sends {counts} rows, receives {arriving}: {sum(arriving)} in all")

# %% [markdown]
# Rank 2 has no rows for rank 0. Then either *both* leave the message out (rank 0 knows by now that nothing
# will arrive), or an empty message travels like any other. If only one of them leaves it out, the other may
# wait forever.
#
# ### Or pad?
#
# You can avoid different sizes: pad every piece to the size of the largest, and use the even all-to-all.
# Every rank then has to know the largest count, and the padding travels as well.
#
# **Predict:** 300 rows change rank among 4 ranks. One of the ranks gets 97 from each of the others, and the
# other pieces have one row each. How many rows travel with padding?
#
# <details><summary>1164, nearly four times as many</summary>
#
# Yes: 12 pieces travel, and each is padded to 97 rows.
# </details>
#
# <details><summary>582, nearly twice as many</summary>
#
# No: that is 6 pieces of 97 rows. Each of the 4 ranks sends 3, so there are 12.
# </details>
#
# <details><summary>388, some more than without</summary>
#
# No: that is one piece of 97 rows for each rank. Each of them sends three.
# </details>

# %%
def bytes_padded_and_not(counts, row_bytes):
    n = len(counts)
    real = sum(counts[i][j] for i in range(n) for j in range(n) if i != j)
    largest = max(max(row) for row in counts)
    return n * (n - 1) * largest * row_bytes, real * row_bytes, n * (n - 1) * 8


for name, counts in {
    "even": [[25] * 4 for _ in range(4)],
    "one rank gets nearly all": [[1, 1, 97, 1] for _ in range(4)],
}.items():
    padded, real, announced = bytes_padded_and_not(counts, row_bytes=4096)
    print(f"{name}: padded {padded:,} bytes, real rows {real:,}, their counts {announced}")

# %% [markdown]
# In both cases 300 rows have to travel. With padding, the second case sends 12 pieces of 97 rows, nearly
# four times as much, while the counts take only 96 bytes. What the counts do cost is *time*: a rank can
# make room for the rows only when the counts have arrived. Systems whose shapes must be fixed in advance do
# pad, and drop the rows that do not fit. How much room they leave is set by the *capacity factor* ([Switch
# Transformers](https://arxiv.org/abs/2101.03961)).
#
# ## Exercise: all_to_all_uneven
#
# The first `counts[0]` rows go to rank 0, the next `counts[1]` to rank 1, and so on. Return one tensor with
# what arrives, in the order of the ranks that it comes from. `rows` has one dimension (then a row is a
# number) or two. Counts may be 0, and there may be no rows at all. Only the sender knows its counts.
#
# You may use your `all_to_all`. Besides the rows that change rank, at most $8n$ bytes may travel for each
# ordered pair of ranks. That is enough for a list of $n$ counts, and too little for padding.
#
# Useful: `rows.split(counts)`, and `rows.new_empty((k, *rows.shape[1:]))`, which has room for `k` rows.

# %%
def all_to_all_uneven(rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """Send counts[j] rows to rank j; return what arrives, in rank order."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    arriving = all_to_all([torch.tensor([count]) for count in counts])
    parts = [rows.new_empty((int(count), *rows.shape[1:])) for count in arriving]
    parts[rank].copy_(mine[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine[dst], dst)
        dist.recv(parts[src], src)
        request.wait()
    return torch.cat(parts)
    ### END SOLUTION


check(all_to_all_uneven)

# %% [markdown]
# ## Mixture of experts
#
# Now you have what the layer at the beginning needs. A *mixture-of-experts* layer has many small networks,
# the **experts**, and a **router** that picks one or a few of them for each token
# ([Shazeer and others 2017](https://arxiv.org/abs/1701.06538)). The experts live on different ranks
# ([GShard](https://arxiv.org/abs/2006.16668)), and so do the tokens. The layer has three steps:
#
# 1. **dispatch**: sort the tokens by expert, and send each to the rank of its expert;
# 2. every expert works on what has arrived;
# 3. **combine**: send the results back, and put them into the old order.
#
# ![Three ranks with four tokens each. Dispatch: the tokens go to experts 0, 1 and 2, which get three, two and seven of them. Combine: each rank has its four tokens back in the old order](../imgs/moe_dispatch.png)
#
# Here it is on 3 ranks. Rank 0 has the tokens 10 to 13, rank 1 has 20 to 23, and rank 2 has 30 to 33.
# Expert $e$ is not a network here: it only adds $100(e+1)$, so that we can see which expert has worked on
# what. The router is a table:

# %%
ROUTER = [  # ROUTER[rank][token] is the expert
    [0, 2, 2, 1],
    [2, 2, 2, 0],
    [1, 2, 0, 2],
]


def moe_layer():
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens = 10.0 * (rank + 1) + torch.arange(4)
    expert = torch.tensor(ROUTER[rank])

    order = expert.argsort(stable=True)  # tokens sorted by expert
    counts = expert.bincount(minlength=n).tolist()
    arrived = all_to_all_uneven(tokens[order], counts)  # dispatch

    worked = arrived + 100 * (rank + 1)  # the expert of this rank

    arriving = all_to_all([torch.tensor([count]) for count in counts])
    back = all_to_all_uneven(worked, [int(count) for count in arriving])  # combine
    result = torch.empty_like(tokens)
    result[order] = back  # the old order again
    return tokens.tolist(), arrived.tolist(), result.tolist()

# %% [markdown]
# Before you run it: which tokens will expert 1 see?

# %%
if check(all_to_all) and check(all_to_all_uneven):
    layer = run(moe_layer, 3)
    for r, (_, arrived, _) in enumerate(layer):
        print(f"expert {r} works on {len(arrived)} tokens: {[int(x) for x in arrived]}")
    for r, (tokens, _, result) in enumerate(layer):
        print(f"rank {r}: {[int(x) for x in tokens]} → {[int(x) for x in result]}")

# %% [markdown]
# Look at the way back. The counts of the combine are the *transposed* counts of the dispatch: as many rows as
# came from rank $j$ go back to rank $j$. And `result[order] = back` undoes the sorting, since `back[i]` is
# the result for token `order[i]`.
#
# Expert 2 has seven of the twelve tokens and expert 1 only two, so all ranks wait for expert 2. That is one
# reason why routers are often trained with an extra loss that rewards balance, as in both papers linked at
# the start of this section.
#
# Here is the dispatch with PyTorch's own `all_to_all_single`. It takes two lists of counts, since it has to be
# told what will arrive as well as what to send:

# %%
def built_in_dispatch():
    rank = dist.get_rank()
    tokens = 10.0 * (rank + 1) + torch.arange(4)
    expert = torch.tensor(ROUTER[rank])
    counts = expert.bincount(minlength=3)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    arrived = torch.empty(int(arriving.sum()))
    dist.all_to_all_single(
        arrived,
        tokens[expert.argsort(stable=True)],
        output_split_sizes=arriving.tolist(),
        input_split_sizes=counts.tolist(),
    )
    return [int(x) for x in arrived]


run(built_in_dispatch, 3)

# %% [markdown]
# ## Summary
#
# - **All-to-all**: rank $r$ ends with chunk $r$ of every rank, in rank order. It transposes the matrix of
#   chunks; done twice, it changes nothing.
# - Sent directly, it takes $n(n-1)$ messages of one chunk each; the diagonal is copied.
# - With rotating peers it takes $n-1$ rounds. If all send to rank 0 first, it takes more. Bruck's
#   way takes $\lceil \log_2 n \rceil$ rounds and sends more bytes.
# - With different sizes, exchange the counts first: `counts` says what a rank sends, and only the senders
#   know what will arrive. Where there are no rows, either both ranks leave the message out or neither does.
#
# Back to the experts. A layer takes two all-to-alls of tokens, one there and one back, and the counts have
# to travel before the tokens. Its computation takes as long as that of its busiest expert.
#
# **Where else it is used:** in attention over split sequences, in distributed Fourier transforms and sorting,
# and for embedding tables that are spread over ranks.
#
# ### Check yourself
#
# <details><summary>8 ranks hold 8 MB each, cut into 8 chunks. How much does each rank send in an all-to-all, and how much in an all-gather of its 8 MB by direct messages?</summary>
#
# 7 chunks of 1 MB make 7 MB. In the all-gather it sends 7 times 8 MB, because every rank needs everything.
# </details>
#
# <details><summary>How many rounds does an all-to-all on 16 ranks take at least, if a rank sends and receives one chunk at a time?</summary>
#
# 15: every rank has 15 chunks to send.
# </details>
#
# <details><summary>Rank 2 has <code>counts = [4, 0, 1]</code>. How many rows does rank 2 receive?</summary>
#
# You cannot tell. It sends 4 rows to rank 0, none to rank 1 and keeps 1. How many it gets from ranks 0 and 1
# is in <em>their</em> counts.
# </details>
#
# **Next:** [09 · Barrier](09_barrier.ipynb): no rank goes on before all are there.
