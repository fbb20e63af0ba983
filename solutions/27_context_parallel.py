# %% [markdown]
# # 27 · Context parallelism
#
# Llama 3 reads up to 131,072 tokens at once. In its largest version each token is a row of 16,384 numbers,
# so in bfloat16 a single activation of a single sequence takes 4.3 GB, and each of its 126 layers has
# several. Data parallelism gives every rank sequences of its own, but it cannot divide *one*. So the
# sequence itself is cut among 16 ranks ([table 4](https://arxiv.org/abs/2407.21783)): each works on 8,192
# tokens. But a token on one rank has to attend to those on the others.
#
# **You will learn** why the cut matters only to attention, how a softmax is put together from pieces, and two
# ways to bring queries and keys together: around a ring, and with all-to-alls. You will count what each
# sends and holds, and share out the work of causal attention evenly.
#
# **You need** chapters [05](05_all_gather.ipynb) (the ring), [08](08_all_to_all.ipynb) (all-to-all) and
# [16](16_scale_math.ipynb) (what a block computes).
#
# **Time:** 3 hours, and 3 exercises. The first is worth 2 points.

# %%
import math
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Where tokens meet
#
# Here is one transformer block of chapter 16, in four pieces: a norm, a projection, an MLP and attention. Give each
# piece the first half of a sequence and then the second half, and put the two results together.
#
# **Predict:** for which of the four is that the same as giving it the whole sequence?
#
# <details><summary>For the projection and the MLP</summary>
#
# No: those two, but also the norm. It takes its mean over the numbers of one token, not over tokens.
# </details>
#
# <details><summary>For all but attention</summary>
#
# Yes: the other three work on each token alone.
# </details>
#
# <details><summary>For all four: a sequence is a batch of tokens</summary>
#
# No: in attention each token looks at the others, and half of them are missing.
# </details>

# %%
torch.manual_seed(0)
heads, dim, length = 4, 16, 32
h = heads * dim
norm, project, mlp = (
    nn.LayerNorm(h),
    nn.Linear(h, h),
    nn.Sequential(nn.Linear(h, 4 * h), nn.GELU(), nn.Linear(4 * h, h)),
)


def split_heads(x):  # tokens × h → heads × tokens × dim
    return x.view(len(x), heads, dim).transpose(0, 1)


def self_attention(x):
    return F.scaled_dot_product_attention(*[split_heads(x)] * 3)


x = torch.randn(length, h)
with torch.no_grad():
    for name, piece, along in (
        ("norm", norm, 0),
        ("projection", project, 0),
        ("MLP", mlp, 0),
        ("attention", self_attention, 1),
    ):
        halves = torch.cat([piece(half) for half in x.chunk(2)], along)
        print(f"{name:10} the same in halves: {torch.allclose(halves, piece(x), atol=1e-5)}")

# %% [markdown]
# The first three work on each token alone. Cut the sequence, and nothing has to be sent for them. In **attention** the
# tokens meet: the result for a token is a mean of the values $v_j$ of all tokens, weighted by how well its query $q$
# fits their keys $k_j$. For each head,
#
# $$\bar o = \frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}, \qquad s_j = \frac{q \cdot k_j}{\sqrt{d}}$$
#
# where $d$ is the number of elements of a key, and the $s_j$ are called **scores**. So each rank needs the keys and
# values of all ranks, though not necessarily at the same time.
#
# ## A softmax in pieces
#
# A sum can be computed piece by piece. Suppose the keys come in two blocks, A and B. For each block a
# rank can compute $\ell = \sum e^{s_j}$ and $o = \sum e^{s_j} v_j$. Add the two $\ell$, add the two $o$,
# divide, done?
#
# **Predict:** below, block B is block A with larger scores. What goes wrong?
#
# <details><summary>Nothing: a common factor cancels in the quotient</summary>
#
# No: it does cancel on paper. But first both sums have to be computed, and $e^{89}$ is too large for
# float32.
# </details>
#
# <details><summary>The result gets less exact, as A's weights vanish</summary>
#
# No: beside weights that are $e^{80}$ times as large they count for nothing in the exact result either.
# </details>
#
# <details><summary>The sums overflow, once the scores are near 89</summary>
#
# Yes: $e^{88}$ is about half of the largest float32, so the sums overflow, and infinity is divided by infinity.
# </details>

# %%
v = torch.tensor([1.0, 2.0, 3.0, 4.0])
scores = torch.tensor([0.0, 1.0, 2.0, 3.0])
for larger in (0, 80, 85, 86, 200):
    both = torch.cat([scores, scores + larger])
    weights = both.exp()
    plain = (weights * torch.cat([v, v])).sum() / weights.sum()
    right = (both.softmax(0) * torch.cat([v, v])).sum()
    print(f"B's scores larger by {larger:3}: {plain:.4f}, and it should be {right:.4f}")

# %% [markdown]
# $e^{89}$ is too large for float32, and infinity divided by infinity is not a number. (At 85 each weight still fits, but
# the weighted sum of the values does not.) The cure is an old one: subtract the largest score $m$ from all of them. All
# weights shrink by the same factor $e^{-m}$, which cancels in the quotient, and the largest weight is 1.
#
# But each block has a largest score of its own, and the second is not known while the first is being computed. Work it
# out on paper: block A was summed with $m_A$, block B with $m_B$. By what do you multiply each before you add them?
# Then write it. (No exercise judges this cell; the next one tries it.)

# %%
def summed(scores, v):
    """Of one block: the largest score m, the sum of all weights, and that of all weighted values."""
    m = scores.max()
    weights = (scores - m).exp()
    return m, weights.sum(), (weights * v).sum()


def merged(one, other):
    """The same three numbers for two blocks together."""
    ### BEGIN SOLUTION
    (m_a, l_a, o_a), (m_b, l_b, o_b) = one, other
    m = torch.maximum(m_a, m_b)
    a, b = (m_a - m).exp(), (m_b - m).exp()
    return m, a * l_a + b * l_b, a * o_a + b * o_b
    ### END SOLUTION


# %%
def merged_and_whole():
    found = []
    for larger in (0, 200, -200):
        _, total, out = merged(summed(scores, v), summed(scores + larger, v))
        right = (torch.cat([scores, scores + larger]).softmax(0) * torch.cat([v, v])).sum()
        found.append(f"B's scores larger by {larger:4}: {out / total:.4f}, and it should be {right:.4f}")
    return found


tried = run(merged_and_whole, 1, may_fail=True)
print(*(tried[0] if tried.failure is None else ["not yet:", tried.failure.message]), sep="\n")

# %% [markdown]
# What was computed with $m_A$ and should have been computed with $m = \max(m_A, m_B)$ is too large by the
# factor $e^{m - m_A}$. So
#
# $$\ell = e^{m_A - m}\,\ell_A + e^{m_B - m}\,\ell_B, \qquad o = e^{m_A - m}\,o_A + e^{m_B - m}\,o_B$$
#
# and neither exponent is ever positive. This is the **online softmax**
# ([Milakov and Gimelshein 2018](https://arxiv.org/abs/1805.02867)).
# [FlashAttention](https://arxiv.org/abs/2205.14135) uses it to go through keys in tiles that fit into a
# GPU's fast memory; we shall use it to go through the blocks of other ranks.
#
# It can be written with one number in place of two. The logarithm of the sum of weights,
# $L = m + \ln \ell = \ln \sum_j e^{s_j}$, is called the **log-sum-exp**. Besides it, only the result
# $\bar o = o / \ell$ of a finished block is needed. The weight of block A, for example, is $e^{L_A - L}$, with
# $L = \ln\left(e^{L_A} + e^{L_B}\right)$ for both blocks together.
#
# The results of the blocks are *averaged with weights*, and a block's weight is its share of the softmax.
# What do you get if you take the plain mean of the two results instead? Below, B's values are A's plus 10,
# and its scores are larger by 0, by 1, and by 200.

# %%
other_v = v + 10
for larger in (0, 1, 200):
    plain = ((scores.softmax(0) * v).sum() + ((scores + larger).softmax(0) * other_v).sum()) / 2
    right = (torch.cat([scores, scores + larger]).softmax(0) * torch.cat([v, other_v])).sum()
    print(f"B's scores larger by {larger:3}: plain mean {plain:.3f}, and it should be {right:.3f}")

# %% [markdown]
# The plain mean is right only where both blocks weigh the same. With scores that are larger by 200, B has all of the
# softmax, and A should not count at all.
#
# ## Around the ring
#
# Now give each rank a block of tokens, with their $q$, $k$ and $v$. The queries stay where they are. The
# blocks of keys and values go round the ring, as the pieces do in `ring_all_gather`, with one difference: a
# rank adds a block to its sums when it arrives, passes it on, and lets it go. This is **ring attention**
# ([Liu, Zaharia and Abbeel 2023](https://arxiv.org/abs/2310.01889)), which builds on attention that is
# computed [block by block](https://arxiv.org/abs/2305.19370) on one device.
#
# ![Four ranks in four rows, in four steps. In step 0 each rank holds its own block of keys and values. In each
# further step it holds the block that its left neighbour held before: rank 0 works on blocks 0, 3, 2, 1, rank 1 on 1,
# 0, 3, 2, rank 2 on 2, 1, 0, 3, rank 3 on 3, 2, 1, 0. Blocks of later ranks are not filled: with a causal mask
# nothing is computed there.](../imgs/ring_of_blocks.png)
#
# **Predict:** how many blocks does each of $n$ ranks send, and how many of *other* ranks does it hold at the same time,
# if the next block travels while it works on this one?
#
# <details><summary>It sends <i>n</i> and holds one</summary>
#
# No: after $n - 1$ steps each block has been everywhere. And while it works on one block, the next one
# also needs a place.
# </details>
#
# <details><summary>It sends <i>n</i> − 1 and holds two</summary>
#
# Yes: its own and all that arrive except the last. It holds the one that it works on and the one that is on
# its way.
# </details>
#
# <details><summary>It sends <i>n</i> − 1 and holds <i>n</i> − 1</summary>
#
# No: that would be an all-gather. Here a block is let go when it has been used and passed on.
# </details>
#
# With a **causal** mask, token $i$ sees only tokens $j \le i$. Blocks are in rank order, so there are three kinds of
# them. Which part does a query on rank $r$ see of its own block, and of one from an earlier rank? (The picture tells
# you about later ranks.) Decide what your function does with each kind before you write it. Beware of rows that have
# seen nothing yet: for them $m = -\infty$, and $-\infty - (-\infty)$ is not a number.
#
# ## Exercise: ring attention
#
# `q`, `k` and `v` are heads × own tokens × dim, of the same shape on all ranks; the tokens are in rank order.
# Return this rank's rows of $\mathrm{softmax}(q k^\top/\sqrt{\mathrm{dim}})\,v$ over the tokens of all
# ranks. The grader compares with the accuracy of float32, and some of its cases have scores that overflow unless a
# maximum is subtracted. There is no backward pass.
#
# - Send to neighbours only, and exactly $n - 1$ blocks, each the size of a `k` and a `v`.
# - Never hold more than **two** blocks of other ranks. A block counts from the moment its receive is posted
#   until no variable refers to it any more, and so does a copy of it. The grader looks whenever a rank
#   begins to wait.


# %%
def ring_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Attention of this rank's queries over the tokens of all ranks."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    block = torch.stack([k, v])
    top = q.new_full((*q.shape[:2], 1), -math.inf)  # the largest score of each row so far
    total, out = torch.zeros_like(top), torch.zeros_like(q)
    for step in range(n):
        if step < n - 1:
            coming = torch.empty_like(block)
            requests = [dist.isend(block, right), dist.irecv(coming, left)]
        owner = (rank - step) % n
        if owner <= rank or not causal:
            scores = q @ block[0].mT / math.sqrt(q.shape[2])  # heads × own tokens × their tokens
            if causal and owner == rank:
                later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -math.inf)
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, shrink = (scores - new).exp(), (top - new).exp()
            total = shrink * total + weights.sum(-1, keepdim=True)
            out = shrink * out + weights @ block[1]
            top = new
        if step < n - 1:
            for request in requests:
                request.wait()
            block = coming
    return out / total
    ### END SOLUTION


ring_works = check(ring_attention)
ring_works

# %% [markdown]
# ## One process, eight ranks
#
# Here is your function on 2, 4 and 8 ranks, compared with torch's own attention in one process that has the whole
# sequence.
#
# Do they agree to five digits? To the last bit?

# %%
torch.manual_seed(0)
whole = torch.randn(3, 8, 64, 16)  # q, k and v of 8 heads and 64 tokens


def on_my_part(attention, whole, causal):
    """The result for this rank's tokens, of a sequence that is cut in rank order."""
    q, k, v = (part.contiguous() for part in whole.chunk(dist.get_world_size(), 2)[dist.get_rank()])
    return attention(q, k, v, causal)


if ring_works:
    for causal in (False, True):
        right = F.scaled_dot_product_attention(*whole, is_causal=causal)
        for n in (2, 4, 8):
            cut = torch.cat(list(run(on_my_part, n, ring_attention, whole, causal)), 1)
            print(
                f"causal={causal!s:5} on {n} ranks: the same to 1e-5: {torch.allclose(cut, right, atol=1e-5)},"
                f" to the last bit: {torch.equal(cut, right)}"
            )

# %% [markdown]
# Every block adds a few roundings, and their order differs from rank to rank. Otherwise ring attention is
# exact: nothing is approximated.
#
# Follow your blocks on a simulated network, where computing takes no time. Each row is a rank, and each arrow a
# message.

# %% tags=["nbval-ignore-output"]
if ring_works:
    display(timeline(simulate(on_my_part, 4, ring_attention, whole, False)))

# %% [markdown]
# ## What a rank holds
#
# Suppose a rank gathered all keys and values first, and then computed attention in one go. That needs
# $n - 1$ blocks of other ranks, and $n$ times as many scores. Here are both ways on 2, 4 and 8 ranks, with
# the same number of tokens *on each rank*. `PeakStorages` notes the most bytes that were alive at any time,
# $q$, $k$ and $v$ aside.
#
# How do the two grow from 2 to 8 ranks?


# %%
from grader.instruments import PeakStorages


def gathered_attention(q, k, v, causal):
    """Attention over keys and values that are gathered first; no mask."""
    block = torch.stack([k, v])
    blocks = [torch.empty_like(block) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, block)
    keys, values = torch.cat(blocks, 2)
    return (q @ keys.mT / math.sqrt(q.shape[2])).softmax(-1) @ values


def most_held(attention, tokens):
    torch.manual_seed(dist.get_rank())
    q, k, v = torch.randn(3, 4, tokens, 64)
    storages = PeakStorages(lambda: [q, k, v])
    with storages:
        attention(q, k, v, False)
    return storages.most, 2 * k.nbytes


if ring_works:
    for n in (2, 4, 8):
        held = {}
        for name, attention in (("gathered", gathered_attention), ("ring", ring_attention)):
            held[name], block_bytes = run(most_held, n, attention, 64)[0]
        gathered, ring = (held[name] / block_bytes for name in ("gathered", "ring"))
        print(f"n = {n}: gathered {gathered:4.1f} blocks, ring {ring:3.1f}")

# %% [markdown]
# A block here is the bytes of one rank's `k` and `v`. The gathered blocks, the copy that joins them and the
# scores all grow with $n$. The ring holds one block of another rank if $n = 2$, and two if there are more
# ranks. The rest are sums, the scores of one block, and a buffer in which the grader receives for you. (The
# scores, heads × tokens × tokens, are not needed all at once either: FlashAttention goes through a block in
# tiles.)
#
# ## All tokens of some heads
#
# There is another way to bring queries and keys together. Each head attends by itself, so cut the *heads*
# among the ranks instead: a rank that has all tokens of some heads needs no other rank. But the tokens were cut for a
# reason: everything else works on whole tokens, with all of their heads.
#
# ![A square of four heads by four blocks of tokens, twice. On the left each rank has a column, all heads of
# its tokens. On the right each rank has a row, all tokens of one head. An all-to-all leads from left to right,
# and one leads back.](../imgs/heads_for_tokens.png)
#
# So change the cut just for attention, and change it back afterwards. On the way from columns to rows of this square,
# rank 0 has something for every rank, and so has every other rank. You know that collective. This is **Ulysses**
# ([Jacobs and others 2023](https://arxiv.org/abs/2309.14509)).
#
# **Predict:** how many tensors does one attention exchange in this way?
#
# <details><summary>One, which goes there and comes back</summary>
#
# No: between the two attention computes, and its result does not exist before.
# </details>
#
# <details><summary>Two: one there, and one back</summary>
#
# No: three go there, the queries, the keys and the values. (They may be packed into one call, but the bytes
# are those of three.)
# </details>
#
# <details><summary>Four: three there, and one back</summary>
#
# Yes: queries, keys and values go there, and the result comes back. In all that is $4\,\frac{n-1}{n}$
# times the bytes of $q$.
# </details>
#
# In each exchange a rank keeps one $n$-th and sends the rest.
#
# The messages are easy; the order of dimensions is not. Take 4 heads, and 2 ranks with 3 tokens each, and let
# each element say where it comes from. Rank 0 gets four rows. Which shape does attention want instead, and what has to
# be done to the rows?


# %%
def who_gets_what():
    rank = dist.get_rank()
    x = torch.tensor([[100 * head + 3 * rank + token for token in range(3)] for head in range(4)])
    received = torch.empty_like(x)
    dist.all_to_all_single(received, x)
    return received


for r, received in enumerate(run(who_gets_what, 2)):
    print(f"rank {r}: {received.tolist()}")

# %% [markdown]
# The hundreds are heads, and the rest is the place in the sequence. `all_to_all_single` cuts the first
# dimension into $n$ equal parts, sends part $j$ to rank $j$, and puts what arrives from rank $j$ into part
# $j$.
#
# Rank 0 wants its two heads, each with all six tokens: 2 × 6. So its first and third rows belong side by side, and so do
# its second and fourth. In the exercise each of these rows is a matrix of tokens × dim, and there are more heads and
# more ranks, but the question is the same: which two dimensions have to become neighbours before they can become one?
#
# ## Exercise: Ulysses
#
# Compute the same attention as before, with `dist.all_to_all_single` (or `dist.all_to_all`). The number of heads is
# divisible by $n$. A rank sends at most $4\,\frac{n-1}{n}$ times the elements of `q`. For attention itself you may use
# `F.scaled_dot_product_attention`. Give it a batch of one sequence, `x[None]`: torch's fused kernels take four dimensions
# only ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/transformers/sdp_utils_cpp.h)), and
# without one of them all scores are in memory at once.


# %%
def ulysses_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """Attention of this rank's queries over the tokens of all ranks, by all-to-alls."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    heads, tokens, dim = q.shape
    whole = []
    for x in (q, k, v):
        received = torch.empty_like(x)
        dist.all_to_all_single(received, x)
        received = received.view(n, heads // n, tokens, dim).transpose(0, 1)  # ranks beside their tokens
        whole.append(received.reshape(heads // n, n * tokens, dim))
    # a batch of one: torch's fast kernels take four dimensions only
    out = F.scaled_dot_product_attention(*(x[None] for x in whole), is_causal=causal)[0]
    out = out.view(heads // n, n, tokens, dim).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(heads, tokens, dim)
    ### END SOLUTION


ulysses_works = check(ulysses_attention)
ulysses_works

# %% [markdown]
# ## Which sends less?
#
# Let $Q$ be the bytes of one rank's $q$; its $k$ and its $v$ have as many. The ring sends $2(n-1)\,Q$ from
# each rank, Ulysses $4\,\frac{n-1}{n}\,Q$.
#
# For which number of ranks are they equal? By which factor do they differ on 8 ranks?

# %%
if ring_works and ulysses_works:
    for n in (2, 4, 8):
        Q = whole[0].numel() // n
        sent = [
            max(run(on_my_part, n, attention, whole, False).trace.sent_elements) / Q
            for attention in (ring_attention, ulysses_attention)
        ]
        print(
            f"n = {n}: the ring sends {sent[0]:5.2f} Q, by the formula {2 * (n - 1):5.2f};"
            f" Ulysses {sent[1]:.2f} Q, by the formula {4 * (n - 1) / n:.2f}"
        )

# %% [markdown]
# On two ranks they are equal; on $n$ ranks Ulysses sends only $2/n$ of what the ring sends. Why would
# anyone use the ring?
#
# **Its messages can hide.** While a block travels, a rank computes with the one before. In one step it multiplies
# $q$ by $k$ and the weights by $v$, $4\,t^2\,hd$ operations for $t$ tokens with $h$ heads of $d$ elements, and sends
# $2\,t\,hd$ elements of $e$ bytes. With $F$ operations and $B$ bytes a second, sending is hidden if
#
# $$\frac{2\,t\,hd\,e}{B} \le \frac{4\,t^2\,hd}{F} \quad\Longleftrightarrow\quad t \ge \frac{e}{2}\cdot\frac{F}{B}$$
#
# The number of heads cancels, and so does the number of ranks: what counts is how many tokens **each** rank
# has. As written here, Ulysses has nothing to compute until all of $q$, $k$ and $v$ are there. (Its heads
# can also be exchanged in groups, so that one group travels while another is computed.)

# %%
FLOPS = 989e12  # of an H100 in bfloat16, dense
for name, bandwidth in (("NVLink, 450 GB/s each way", 450e9), ("InfiniBand, 50 GB/s", 50e9)):
    print(f"{name:26} hidden with {2 / 2 * FLOPS / bandwidth:7,.0f} or more tokens on each rank")

# %% [markdown]
# (The [data sheet](https://www.nvidia.com/en-us/data-center/h100/) has the numbers: 900 GB/s of NVLink in both
# directions together, and twice the operations, with sparsity. No program reaches the full $F$; with less,
# fewer tokens are enough. Causal attention has half the work, and needs twice as many.)
#
# **It does not run out of heads.** Ulysses cannot use more ranks than there are heads. And most large
# models have few heads of keys and values: in [grouped-query attention](https://arxiv.org/abs/2305.13245)
# several heads of queries share one of keys and values. Llama 3 405B has 128 heads of queries and 8 of keys
# and values ([table 3](https://arxiv.org/abs/2407.21783)), so the ring sends a sixteenth of the bytes, and
# needs a sixteenth of the tokens to hide them.
#
# **Predict:** with that, which of the two sends less?
#
# <details><summary>Ulysses on 3 or more ranks, as before</summary>
#
# No: only keys and values have become fewer, and these are all that the ring sends. Ulysses also
# sends queries and results.
# </details>
#
# <details><summary>The ring, up to some 16 ranks</summary>
#
# Yes: its blocks are a sixteenth of the size. But it sends one more for each further rank, and at some
# point they add up to more.
# </details>
#
# <details><summary>The ring, on any number of ranks</summary>
#
# No: what it sends grows by an eighth of $Q$ with each rank, while what Ulysses sends soon grows much more slowly.
# </details>

# %%
share = 8 / 128  # heads of keys and values for each head of queries
for n in (2, 4, 8, 16, 32, 64):
    copies = max(1, n / 8)  # ranks that attend with the same head of keys and values
    ring, ulysses = 2 * share * (n - 1), (2 + 2 * share * copies) * (n - 1) / n
    print(f"n = {n:2}: ring {ring:5.2f} Q, Ulysses {ulysses:.2f} Q")

# %% [markdown]
# Up to 16 ranks the ring sends less, and on 32 or more Ulysses does. (On more than 8 ranks there is no
# longer a head of keys and values for each, so Ulysses sends copies, which are counted here.) Llama 3
# itself was trained in a third way: it gathers keys and values before attention, since with so few heads
# they are small, and other masks are then easier, such as one that keeps the documents in a packed sequence
# apart (section 3.3.2 of the [paper](https://arxiv.org/abs/2407.21783)). And the two can be combined:
# Ulysses inside a node, a ring across nodes ([Fang and Zhao 2024](https://arxiv.org/abs/2405.07719)).
#
# ## Half the work, and no time saved
#
# With a causal mask, about half of all pairs of query and key drop out, as chapter
# [16](16_scale_math.ipynb) says. Does that make ring attention twice as fast?
#
# **Predict:** 8 ranks with 1000 tokens each. About how many times as many pairs does rank 7 have as rank 0?
#
# <details><summary>As many: all have 1000 tokens</summary>
#
# No: a token sees all those before it, and rank 7 has the last tokens.
# </details>
#
# <details><summary>Eight times: it sees eight blocks, and rank 0 one</summary>
#
# No: rank 0 sees only half of its one block, since the mask cuts it in two. Rank 7 sees seven whole
# ones and a half.
# </details>
#
# <details><summary>Fifteen times: it sees seven and a half blocks, and rank 0 half a block</summary>
#
# Yes: seven blocks of earlier ranks whole, and half of its own.
# </details>


# %%
def contiguous_split(tokens, n):
    return [list(range(r * tokens // n, (r + 1) * tokens // n)) for r in range(n)]


def pairs(split):
    """Pairs of query and key for each rank; token i, counted from 0, sees i + 1 keys."""
    return [sum(token + 1 for token in mine) for mine in split]


work = pairs(contiguous_split(8000, 8))
average = sum(work) / len(work)
print("pairs by rank:", *(f"{number:,}" for number in work))
print(
    f"all pairs without a mask, for each rank: {8000 * 1000:,}; with it on average: {average:,.0f}"
)
print(f"the last rank has {work[-1] / average:.2f} times the average")

# %% [markdown]
# The last rank has nearly as much to do as without a mask, $2 - 1/n$ times the average, and all others wait
# for it. The cure is to deal the tokens out differently. Each rank should have early ones, which see little, and
# late ones, which see much.
#
# ![Three lower triangles of queries by keys, in the colours of four ranks. On the left each rank has
# consecutive rows: the last rank's are the longest. In the middle every fourth row belongs to the same rank. On
# the right the rows are cut into eight chunks, whose owner is covered by question marks.](../imgs/causal_splits.png)
#
# The middle one is [striped attention](https://arxiv.org/abs/2311.09431). Its ranks are nearly equal: each token
# of rank $r + 1$ sees one key more than the token of rank $r$ just before it. With two chunks for each
# rank, the work can be made exactly equal.
#
# ## Exercise: zigzag
#
# Return a list of `n` lists: the tokens of each rank, numbered from 0. `n` is the number of ranks, and `tokens` is
# divisible by $2n$. Each rank gets equally many tokens, and the numbers of pairs of any two ranks differ by at most
# `tokens` / $2n$. Nothing is sent.


# %%
def zigzag_split(tokens: int, n: int) -> list[list[int]]:
    """The tokens of each rank, so that all have as much causal work."""
    ### BEGIN SOLUTION
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[2 * n - 1 - r] for r in range(n)]
    ### END SOLUTION


zigzag_works = check(zigzag_split)
zigzag_works

# %% [markdown]
# ### Write it: the mask
#
# A rank then no longer has consecutive tokens. Which keys a query must not see depends on where the two are in the
# sequence, and no longer on the ranks alone. Write that mask. `queries` and `keys` are one-dimensional tensors of
# places, and the result has a row for each query and a column for each key. With queries at 2 and 5 and keys at 1, 2
# and 3, for example, only the key at 3 is hidden, and only from the query at 2. (No exercise judges this cell; the next
# one tries it.)


# %%
def hidden(queries, keys):
    """True where a query (row) must not see a key (column); both are given by their places."""
    ### BEGIN SOLUTION
    return keys > queries[:, None]
    ### END SOLUTION


# %% [markdown]
# Here is attention over gathered keys and values once more, now with your mask, block by block. The tokens of four
# ranks are contiguous, then in stripes, then in zigzag. Does each rank get its rows of causal attention?


# %%
def striped_split(tokens, n):
    return [list(range(r, tokens, n)) for r in range(n)]


def attention_by_place(whole, split):
    """Causal attention of this rank's tokens over those of all ranks, in the order of the ranks."""
    places = [torch.tensor(mine) for mine in split]
    q, k, v = whole[:, :, places[dist.get_rank()]]
    block = torch.stack([k, v])
    blocks = [torch.empty_like(block) for _ in places]
    dist.all_gather(blocks, block)
    mask = torch.cat([hidden(places[dist.get_rank()], theirs) for theirs in places], 1)
    keys, values = torch.cat(blocks, 2)
    scores = q @ keys.mT / math.sqrt(q.shape[2])
    return scores.masked_fill(mask, -math.inf).softmax(-1) @ values


mask_works = zigzag_works
if zigzag_works:
    right = F.scaled_dot_product_attention(*whole, is_causal=True)
    for kind in (contiguous_split, striped_split, zigzag_split):
        split = kind(64, 4)
        tried = run(attention_by_place, 4, whole, split, may_fail=True)
        if tried.failure:
            print("not yet:", tried.failure.message)
            mask_works = False
            break
        same = all(torch.allclose(a, right[:, mine], atol=1e-5) for a, mine in zip(tried, split))
        print(f"{kind.__name__:16} the same as torch's to 1e-5: {same}")
        mask_works = mask_works and same

# %% [markdown]
# A ring can do the same with one block at a time: its mask follows from the places of the rank's own tokens and of the
# block's. Embeddings of positions go by place as well. Nothing else in a transformer cares about the order of tokens.
#
# ### The work of each step
#
# An even total is not enough for a ring: its ranks go from step to step, and every step takes as long as its
# slowest rank. So let us see how the work of each *step* is shared out, and how long the whole ring takes. In the
# simulation below a rank sleeps for one nanosecond for every pair of query and key that its queries see in the
# block that it has.
#
# **Predict:** how much faster is the ring with the zigzag than with contiguous tokens on 8 ranks, and is the zigzag even
# in every step?
#
# <details><summary>Hardly faster: it is even in all, but not in every step</summary>
#
# No: of another rank's block, each rank sees the same number of pairs: half of them.
# </details>
#
# <details><summary>Nearly twice as fast, and even in every step</summary>
#
# Yes: each rank sees half of every block that arrives, where the last rank used to see all of it.
# </details>
#
# <details><summary>Eight times as fast, and even in every step</summary>
#
# No: the last rank had not even twice the average work, so no more than that can be gained.
# </details>


# %%
def seen(queries, keys):
    """Pairs of a query and a key that it sees."""
    return int((~hidden(torch.tensor(queries), torch.tensor(keys))).sum())


def ring_steps(split, block):
    """Pass blocks around the ring, and take a nanosecond for each pair of query and key."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n):
        requests = []
        if step < n - 1:
            coming = torch.empty_like(block)
            requests = [dist.isend(block, (rank + 1) % n), dist.irecv(coming, (rank - 1) % n)]
        time.sleep(1e-9 * seen(split[rank], split[(rank - step) % n]))
        for request in requests:
            request.wait()


def compared(splits, tokens, n):
    for name, split in splits.items():
        steps = [[seen(split[r], split[(r - s) % n]) for r in range(n)] for s in range(n)]
        uneven = max(max(step) - min(step) for step in steps)
        done = simulate(ring_steps, n, split, torch.zeros(2, 16), alpha=1e-6, beta=1e-10)
        print(
            f"{name:10} ranks differ by {max(pairs(split)) - min(pairs(split)):7,} pairs in all,"
            f" by at most {uneven:6,} in a step; the ring takes {1e3 * done.seconds:.3f} ms"
        )


if mask_works:
    tokens, n = 1600, 8
    splits = {
        kind.__name__.removesuffix("_split"): kind(tokens, n)
        for kind in (contiguous_split, striped_split, zigzag_split)
    }
    compared(splits, tokens, n)
    print(f"an n-th of all pairs takes {1e-6 * sum(pairs(splits['zigzag'])) / n:.3f} ms")

# %% [markdown]
# With contiguous tokens, in every step after the first some rank works on a whole block of an earlier rank,
# while others have nothing to do at all. The zigzag is even in *every* step: of another rank's block, each
# rank sees exactly half. The stripes are nearly as good; what they lack matters less, the longer the
# sequence is.
#
# Llama 3 cuts its sequences in zigzag (section 3.3.2), and so does
# [Megatron-LM](https://github.com/NVIDIA/Megatron-LM/blob/00611e6eeb0b09b5ee074750956855215ddbd67f/megatron/core/utils.py),
# in `get_pretrain_batch_on_this_cp_rank`.
#
# Two more things are easy to forget in training. All ranks have the same weights, and each sees different
# tokens, so gradients are added up over the ranks of context parallelism as over those of data parallelism,
# and a mean loss has to count the tokens of both. (Megatron-LM once [counted the data-parallel ranks
# alone](https://github.com/NVIDIA/Megatron-LM/commit/3bdcbbb).) And targets are shifted by one *before* the
# sequence is cut: the target of a chunk's last token is the first token of the next chunk, which may be on
# another rank.
#
# ## What torch has
#
# `torch.distributed.tensor.experimental` has a context
# [`context_parallel`](https://docs.pytorch.org/docs/stable/distributed.tensor.html), in which
# `scaled_dot_product_attention` becomes a ring attention; sequences are cut in zigzag unless you choose
# another cut. Its documentation calls it a prototype. It replaces three kernels, those of FlashAttention,
# of the memory-efficient attention and of cuDNN
# ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/tensor/experimental/_context_parallel/_attention.py)).
# All three are for GPUs. On a CPU, with gloo, causal attention in it raises an error, because the CPU's
# kernel is not among them; so it cannot be compared with your causal attention here.
#
# ## Summary
#
# A sequence that fits on no rank can be cut along its tokens. Everything in a transformer works on each
# token alone, except attention.
#
# - A softmax can be computed in pieces. Keep the largest score, the sum of weights and the weighted sum; when the
#   largest score grows, rescale both sums.
# - **Ring attention** passes blocks of keys and values round: $2(n-1)\,Q$ bytes from each rank, hidden behind the
#   computation if each rank has enough tokens; two blocks of other ranks in memory, however many ranks there are.
# - **Ulysses** exchanges tokens for heads with four all-to-alls: $4\,\frac{n-1}{n}\,Q$ bytes, on at most as many
#   ranks as there are heads.
# - A causal mask makes contiguous tokens uneven, almost by a factor of two. Two chunks for each rank, one from either end,
#   make them even in every step.
#
# ### Check yourself
#
# <details><summary>A ring of 16 ranks with 1000 tokens each becomes one of 32 ranks with 1000 tokens each. What happens to the bytes that a rank sends, to those that it holds, and to its work, without a mask?</summary>
#
# It sends 31 blocks instead of 15, about twice as many bytes. It holds the same as before. Its 1000 queries
# see 32,000 keys instead of 16,000, so its work doubles, and each step is as well hidden as before.
# </details>
#
# <details><summary>A row has seen only blocks in which it sees nothing. What are its maximum, its sum of weights, and its result? What will merging it with a finished block do?</summary>
#
# −∞, 0, and 0/0. A merge of sums is right: the factor of $\ell = 0$ and $o = 0$ is $e^{-\infty - m} = 0$. But a result
# that has been divided already is not a number, and 0 times that is not one either. And the sums are 0 only if you
# take care: each weight is $e^{s - m}$, and $-\infty - (-\infty)$ is not a number. If the first block is the rank's own,
# every row has seen at least its own key, so $m$ is never −∞, and none of this comes up.
# </details>
#
# <details><summary>Sequence parallelism of chapter 17 also cuts along the sequence. What is the difference?</summary>
#
# There the cut is undone before every product of a tensor-parallel layer, attention included: all tokens are gathered,
# and the *heads* and columns are cut. In context parallelism the tokens stay cut from the embedding to the loss.
# </details>
#
# **To go on:** backward goes round the ring once more. A rank has kept $L$ for each of its rows. From it, the rank
# computes the weights of each block again, and adds what its queries contribute to the gradients of that block's keys
# and values. These gradients travel with the block and are home after $n$ steps. So a rank sends $2(n-1)\,Q$ for the
# blocks and $2n\,Q$ for the gradients. See how
# [ring-flash-attention](https://github.com/zhuzilin/ring-flash-attention) does it, around the kernels of FlashAttention.
#
# **Next:** [28 · Expert parallelism](28_expert_parallel.ipynb): there the tokens themselves travel, to the experts that
# they are routed to.
