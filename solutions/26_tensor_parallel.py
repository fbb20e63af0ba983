# %% [markdown]
# # 26 · Tensor parallelism
#
# ZeRO and FSDP cut what a rank *keeps*, and a pipeline deals out whole layers. But to compute a layer, a
# rank still gathers that whole layer, does all of its work alone, and keeps all of its activations. What if
# that is too much, or too slow?

# %%
hidden, blocks, sequence = 20480, 105, 2048  # of MT-NLG, a model of 530 billion parameters
block_params = 12 * hidden**2  # chapter 16
print(f"one block: {block_params / 1e9:.2f} billion parameters")
print(f"its weights and gradients in bfloat16: {2 * 2 * block_params / 1e9:.1f} GB")
print(f"kept for backward, of one sequence: {34 * sequence * hidden * blocks / 1e9:.0f} GB in all blocks")

# %% [markdown]
# (The numbers of MT-NLG are in [Smith and others 2022](https://arxiv.org/abs/2201.11990); the 34 bytes come
# up again below.) With FSDP, a rank still fills 20 GB for each block that it computes. And what is kept for
# backward, 150 GB for a single sequence, FSDP does not divide at all; without computing much of it again,
# no GPU of 80 GB can hold it. Nor can data parallelism use more ranks than a batch has sequences. **Tensor
# parallelism** shares out the *work* of each layer: every rank multiplies with its own part of each matrix,
# and no rank ever has a whole one. The price is that activations travel in every layer.
#
# Chapter [17](17_sharded_matmul.ipynb) cut single products, and put two of them together: columns first,
# then rows, with one collective at each end. This chapter builds a transformer from that, as Megatron-LM
# does. Then it turns to what remains: the loss, whose logits are the largest tensor of all, and the time
# that those collectives take.
#
# **You will learn** where a transformer block communicates, and how often; how to cut attention, and a
# loss over a vocabulary that no rank has all of; what sequence parallelism saves; and how to multiply while
# data is still on its way.
#
# **You need** chapters [05](05_all_gather.ipynb), [07](07_all_reduce.ipynb) and
# [17](17_sharded_matmul.ipynb), and for the last part [16](16_scale_math.ipynb).
#
# **Time:** 2½ hours, with 3 exercises.

# %%
import time
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## The pair f and g
#
# ![A transformer block on two ranks. At the top both have the whole x. Then come a layer norm, computed
# twice; a line named f; on each rank half of the heads; a line named g; and the addition to x. Then again a
# layer norm, f, on each rank half of the columns, a GELU and half of the rows, g, and the addition. f:
# forward nothing, backward all-reduce. g: forward all-reduce, backward
# nothing.](../imgs/tensor_parallel_block.png)
#
# Read the picture from top to bottom. Between an *f* and the *g* below it, a rank works with its own
# shards and sends nothing. Outside, all ranks hold the same numbers and compute the same. Chapter 17 called
# the two functions at the borders `Share` and `Add`;
# [Megatron-LM](https://arxiv.org/abs/1909.08053) calls them $f$ and $g$, and they are *conjugate*: the
# forward of each is the backward of the other.
#
# | | forward | backward |
# |---|---|---|
# | $f$, where shards begin | pass on | all-reduce: $x$ went to all ranks |
# | $g$, where shards end | all-reduce: each rank has one term of a sum | pass on |
#
# Write the two as functions. The rest of the chapter uses them. (No exercise judges this cell; the next
# one tries them.)


# %%
def f(x):
    """Pass x on; in backward, add up all ranks' gradients."""
    ### BEGIN SOLUTION
    return Enter.apply(x)


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad)


def added_up(x):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total
    ### END SOLUTION


def g(part):
    """Add up all ranks' parts; in backward, pass the gradient on."""
    ### BEGIN SOLUTION
    return Leave.apply(part)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return added_up(part)

    @staticmethod
    def backward(ctx, grad):
        return grad

    ### END SOLUTION


# %% [markdown]
# Each rank multiplies the same $x = 1$ by its own weight: 2 on rank 0, 3 on rank 1.
#
# **Predict:** $y$ is 5 on both ranks. What is the gradient of $x$?
#
# <details><summary>2 on rank 0, 3 on rank 1</summary>
#
# No: that would be without $f$, whose backward adds up what the ranks contribute.
# </details>
#
# <details><summary>5 on both</summary>
#
# Yes: $y = (2 + 3)\,x$, and the backward of $f$ adds up 2 and 3.
# </details>
#
# <details><summary>10 on both</summary>
#
# No: that would be with a second all-reduce, in the backward of $g$. Every rank has the same loss, so
# $g$ passes its gradient on.
# </details>


# %%
def trial():
    x = torch.ones(1, requires_grad=True)
    y = g((dist.get_rank() + 2.0) * f(x))
    y.sum().backward()
    return y.item(), x.grad.item()


tried = run(trial, 2, may_fail=True)
pair_works = tried.failure is None and all(found == (5.0, 5.0) for found in tried)
print("y and the gradient of x are 5 on both ranks:", pair_works)

# %% [markdown]
# In one process, both numbers are also 5. With a second all-reduce in the backward of $g$, the gradient
# would be 10, as chapter 17 shows for the library's differentiable all-reduce.
#
# ## Exercise: parallel_mlp
#
# The MLP of a transformer: a product, an exact GELU (`torch.nn.functional.gelu`), and a product. Weights
# have the shape (in, out). `w_in_shard` has this rank's columns of the first weight, and `w_out_shard` the
# rows of the second that go with them, both as `tensor_split` cuts them. `x` is the same on every rank, has
# two or three dimensions, and does not always require a gradient. Every rank computes the same loss from
# the result.
#
# - The result and the gradients of `x` and of both shards equal those of the whole weights.
# - At most one all-reduce in forward and one in backward, and no other collective.
# - With fewer columns than ranks, some shards are empty.


# %%
def parallel_mlp(x: torch.Tensor, w_in_shard: torch.Tensor, w_out_shard: torch.Tensor) -> torch.Tensor:
    """A GELU between two products, whose weights are cut by columns and by rows."""
    ### BEGIN SOLUTION
    return g(F.gelu(f(x) @ w_in_shard) @ w_out_shard)
    ### END SOLUTION


mlp_works = check(parallel_mlp)
mlp_works

# %% [markdown]
# ### What was sent?
#
# `mark` names a moment in the record of a rank, and `split_at` cuts the record there. So we can count what
# is sent in forward, and what in backward.
#
# **Predict:** the MLP has 16 tokens, a width of 64, and 4 · 64 columns inside. How many elements does each
# all-reduce carry on 4 ranks?
#
# <details><summary>16 · 64, whatever the inner width</summary>
#
# Yes: what is added up is the result of the layer, or the gradient of its input.
# </details>
#
# <details><summary>16 · 64 · 4, the tensor inside</summary>
#
# No: between the two products each rank goes on with its own columns, and nothing of them travels.
# </details>
#
# <details><summary>16 · 64 / 4, a rank's share</summary>
#
# No: each rank has a term of *every* element of the result, and not a part of the elements.
# </details>

# %%
tokens, width = 16, 64


def mlp_calls(inner):
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(26)
    x, w_in, w_out = torch.randn(tokens, width), torch.randn(width, inner), torch.randn(inner, width)
    shards = w_in.tensor_split(n, 1)[rank].clone(), w_out.tensor_split(n, 0)[rank].clone()
    y = parallel_mlp(x.requires_grad_(), *(shard.requires_grad_() for shard in shards))
    mark("backward begins")
    y.square().mean().backward()


def by_phase(trace):
    """For rank 0, the collectives of forward and of backward, with the elements that each carries."""
    phases = trace.split_at("backward begins")
    return [[(op.kind, trace.given(op)) for op in phase.operations[0]] for phase in phases]


if mlp_works:
    for inner in (4 * width, 16 * width):
        forward, backward = by_phase(run(mlp_calls, 4, inner).trace)
        print(f"inner width {inner:4}: forward {forward}, backward {backward}")

# %% [markdown]
# The wide tensor inside never travels, and weights and their gradients do not either.
#
# ## Attention, by heads
#
# Multi-head attention is made for this cut. Each head has its own columns of the query, key and value
# weights. It computes $\mathrm{softmax}(q k^\top / \sqrt d)\,v$ without looking at any other head, and its
# result is multiplied by its own *rows* of the output weight. Columns, then work that each head does on its
# own, then rows: the same shape as the MLP.
#
# 8 heads of 8 numbers each, on 4 ranks: which shapes do `w_qkv` and `w_out` have on each rank? And how many
# all-reduces are there, forward and backward?

# %%
HEADS = 8


def attention(qkv, heads, w_out):
    """Attention with some heads: qkv holds their queries, keys and values, side by side."""
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(0, 1) for part in qkv.chunk(3, -1))
    weights = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
    return (weights @ v).transpose(0, 1).flatten(1) @ w_out


def attention_weights():
    torch.manual_seed(27)
    scale = width**-0.5
    return [scale * torch.randn(width, 3 * width), scale * torch.randn(width, width)]


def of_my_heads(w_qkv, w_out):
    """This rank's columns of the queries, keys and values of its heads, and the rows that go with them."""
    rank, n = dist.get_rank(), dist.get_world_size()
    columns = [part.tensor_split(n, 1)[rank] for part in w_qkv.chunk(3, 1)]
    return torch.cat(columns, 1), w_out.tensor_split(n, 0)[rank].clone()


def attention_in_ranks(x):
    shards = [w.requires_grad_() for w in of_my_heads(*attention_weights())]
    x.requires_grad_()
    y = g(attention(f(x) @ shards[0], HEADS // dist.get_world_size(), shards[1]))
    mark("backward begins")
    y.square().mean().backward()
    return y.detach(), x.grad, [tuple(w.shape) for w in shards]


def attention_alone(x):
    w_qkv, w_out = attention_weights()
    x = x.clone().requires_grad_()
    y = attention(x @ w_qkv, HEADS, w_out)
    y.square().mean().backward()
    return y.detach(), x.grad


x = torch.randn(tokens, width, generator=torch.Generator().manual_seed(1))
if pair_works:
    done, whole = run(attention_in_ranks, 4, x), attention_alone(x)
    equal = [torch.allclose(a, b, atol=1e-5) for found in done for a, b in zip(found, whole)]
    print("equal to one process:", all(equal))
    print("shapes of w_qkv and w_out on rank 0:", *done[0][2])
    forward, backward = by_phase(done.trace)
    print(f"forward {forward}, backward {backward}")

# %% [markdown]
# Each rank has two heads, so 3 · 16 columns and 16 rows, and there is again one all-reduce each way. The
# columns of `w_qkv` are cut *within* the queries, the keys and the values. A plain `tensor_split` of all
# 192 columns would give the first rank only queries, and the last one only values.
#
# ## A whole block
#
# Now put both halves together, with layer norms and additions between them. What happens at the borders is
# given to `block` as two arguments: `enter` takes an activation into the shards and multiplies it with the
# rank's columns, and `leave` makes the parts of all ranks whole again.


# %%
def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def block(x, weights, heads, enter, leave):
    w_qkv, w_out, w_up, w_down = weights
    x = x + leave(attention(enter(norm(x), w_qkv), heads, w_out))
    return x + leave(F.gelu(enter(norm(x), w_up)) @ w_down)


def block_weights(width):
    torch.manual_seed(28)
    shapes = (width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)
    return [width**-0.5 * torch.randn(shape) for shape in shapes]


def my_shards(w_qkv, w_out, w_up, w_down):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = *of_my_heads(w_qkv, w_out), w_up.tensor_split(n, 1)[rank], w_down.tensor_split(n, 0)[rank]
    return [w.clone().requires_grad_() for w in mine]


def plain(x, w):
    """Columns in one process."""
    return x @ w


def replicated(x, w):
    """Columns of the whole x, which every rank has."""
    return f(x) @ w


def block_in_ranks(x):
    weights = my_shards(*block_weights(width))
    x.requires_grad_()
    y = block(x, weights, HEADS // dist.get_world_size(), replicated, g)
    mark("backward begins")
    y.square().mean().backward()
    return y.detach(), x.grad


def block_alone(x):
    x = x.clone().requires_grad_()
    y = block(x, block_weights(width), HEADS, plain, lambda y: y)
    y.square().mean().backward()
    return y.detach(), x.grad


if pair_works:
    done, whole = run(block_in_ranks, 4, x), block_alone(x)
    equal = [torch.allclose(a, b, atol=1e-5) for found in done for a, b in zip(found, whole)]
    print("equal to one process:", all(equal))
    forward, backward = by_phase(done.trace)
    print(f"forward {forward}\nbackward {backward}")

# %% [markdown]
# In each step, a block makes two all-reduces in forward and two in backward, all of the same size.
#
# ### Counted, and compared with the formula
#
# Chapter 16 counts what one rank sends for one token in the forward pass of a block of width $h$, with $e$
# bytes for each element: four all-gathers or reduce-scatters of $\frac{n-1}{n} e h$ bytes, which is two
# all-reduces. It compares that with the $2 \cdot 12 h^2 / n$ operations of the rank's products.
#
# **Predict:** does it help to have more tokens in the batch?
#
# <details><summary>Yes: more computing hides the same messages</summary>
#
# No: these messages are not weights or gradients. They are activations, and grow with the tokens.
# </details>
#
# <details><summary>No: both times grow with the tokens</summary>
#
# Yes: what is sent and what is computed are both proportional to the tokens, so these cancel.
# </details>
#
# <details><summary>No, it harms: messages grow and the work does not</summary>
#
# No: each token also goes through the rank's products, so the work grows just as fast.
# </details>
#
# For the whole block, communication and computation take times in the ratio
# $\frac{e (n-1)}{6h} \cdot \frac{F}{B}$, with $F$ operations and $B$ bytes a second. Take $h = 8192$ and 8
# GPUs, first inside one machine (450 GB/s), then in different machines (50 GB/s). Is the ratio above or
# below 1? (Chapter 16's `tp_overlap_ratio` is three times as large. It is that of one square matrix, and a block
# has the operations of twelve, for the messages of four.)
#
# The cell below also lets torch count the operations of a rank. Attention adds some to those of the products. Does
# their share depend on $n$?

# %%
from torch.utils.flop_counter import FlopCounterMode

PEAK, INSIDE, OUTSIDE = 989e12, 450e9, 50e9  # chapter 16


def forward_counted(x):
    """The operations of this rank's forward pass."""
    weights = my_shards(*block_weights(width))
    with FlopCounterMode(display=False) as counter:
        block(x.requires_grad_(), weights, HEADS // dist.get_world_size(), replicated, g)
    return counter.get_total_flops()


if pair_works:
    for n in (2, 4, 8):
        ran = run(forward_counted, n, x, seconds=120)
        sent, formula = ran.trace.max_sent_elements / tokens, 4 * (n - 1) / n * width
        more = ran[0] / (24 * width**2 * tokens / n) - 1
        print(f"n = {n}: {sent:.0f} elements a token; formula 4 (n−1)/n h = {formula:.0f}")
        print(f"       {more:.1%} more operations than 24 h²/n a token")
for where, bandwidth in (("inside", INSIDE), ("outside", OUTSIDE)):
    for h in (8192, 20480):
        ratio = 2 * (8 - 1) / (6 * h) * PEAK / bandwidth
        print(f"{where:7} h = {h:5}, 8 ranks: communication takes {ratio:.2f} of the computation's time")

# %% [markdown]
# Attention compares each of $s$ tokens with all others, which adds $s/6h$ to the operations. Heads are shared out
# like everything else, so that does not depend on $n$.
#
# The tokens cancel. At $h = 8192$, communication takes nearly two thirds of the computation's time inside a
# machine, and several times as long across machines. And unlike in data parallelism, it cannot hide: the
# next layer needs the sum. That is why tensor parallelism stays where links are fastest. Two improvements
# lead on from here: keep less in memory while sending the same bytes, and hide the time after all.
#
# ## Sequence parallelism: the same bytes, less memory
#
# Outside of the pairs, every rank computes the same norms and additions and keeps the same inputs for
# backward. Chapter 17 had the remedy: **an all-reduce is a reduce-scatter and an all-gather**. So stop
# after the first half, let each rank work on its own tokens, and do the second half where the next shards
# begin. ([Korthikanti and others 2022](https://arxiv.org/abs/2205.05198) call the new pair $g$ and
# $\bar g$, so their $g$ is not the one above.) Here are the two, as in chapter 17, and a third function
# that does not keep what it has gathered.


# %%
def gathered(part):
    whole = part.new_empty(dist.get_world_size() * part.shape[0], *part.shape[1:])
    dist.all_gather_into_tensor(whole, part.contiguous())
    return whole


def scattered_sum(whole):
    part = whole.new_empty(whole.shape[0] // dist.get_world_size(), *whole.shape[1:])
    dist.reduce_scatter_tensor(part, whole.contiguous())
    return part


class GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return gathered(part)

    @staticmethod
    def backward(ctx, grad):
        return scattered_sum(grad)


class ScatterSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return scattered_sum(part)

    @staticmethod
    def backward(ctx, grad):
        return gathered(grad)


class GatherTwice(torch.autograd.Function):
    """All tokens times columns; keeps the rank's own tokens, and gathers again in backward."""

    @staticmethod
    def forward(ctx, part, w):
        ctx.save_for_backward(part, w)
        return gathered(part) @ w

    @staticmethod
    def backward(ctx, grad):
        part, w = ctx.saved_tensors
        return scattered_sum(grad @ w.T), gathered(part).T @ grad


def of_own_tokens(x, w):
    """Columns of all tokens; a rank has its own tokens."""
    return GatherTokens.apply(x) @ w


# %% [markdown]
# The block is the same as before; only its borders change. `HeldStorages`, which you know from chapter
# [23](23_zero.ipynb), adds up the memory of all tensors that the block has made or used and that are still
# alive after forward. The weights are left out, so all the rest is kept for backward.
#
# With replicated norms, five tensors of the size of $x$ stay on every rank: $x$, the result of each norm, and
# the sum after each half. All others are cut. Which of the five does sequence parallelism cut? What does it cost
# to keep tokens that were gathered? And which of the three forms sends most?

# %%
from grader.instruments import HeldStorages

many, wide = 128, 256
FORMS = {
    "replicated": (replicated, g),
    "own tokens": (of_own_tokens, ScatterSums.apply),
    "gathered twice": (GatherTwice.apply, ScatterSums.apply),
}


def step_of(form):
    """Bytes that wait for backward, and gradients of the first weight, of one block."""
    rank, n = dist.get_rank(), dist.get_world_size()
    enter, leave = FORMS[form]
    weights = my_shards(*block_weights(wide))
    x = torch.randn(many, wide, generator=torch.Generator().manual_seed(2))
    x = x if form == "replicated" else x.tensor_split(n)[rank].clone()
    storages = HeldStorages(lambda: weights)
    with storages:
        y = block(x.requires_grad_(), weights, HEADS // n, enter, leave)
    storages.settle(0)  # gloo's thread lets go of the last tensors a moment later
    nbytes = storages.nbytes
    y.square().sum().backward()
    return nbytes, weights[0].grad


S = many * wide * 4  # bytes
if pair_works:
    for n in (2, 4, 8):
        gradients = []
        for form in FORMS:
            done = run(step_of, n, form, seconds=60)
            nbytes, gradient = done[0]
            gradients.append(gradient)
            sent = done.trace.max_sent_elements * 4
            print(f"n = {n}: {form:14} sends {sent / S:.3f} S, keeps {nbytes / S:.2f} S")
        print("  equal gradients:", all(torch.allclose(a, gradients[0], atol=1e-3) for a in gradients))

# %% [markdown]
# **Sent:** with own tokens exactly as much as with all-reduces, $8 \frac{n-1}{n} S$ a step, and with the
# second gathering $10 \frac{n-1}{n} S$.
#
# **Kept**, in units of S, the size of $x$: with replicated norms, every rank keeps all five tensors. Of
# everything else it keeps its part: queries, keys and values (3), the heads' results (1), the MLP before and
# after its GELU (4 + 4), and the attention weights. Those are $8 \cdot 128^2$ numbers, here another 4 S, and
# they grow with the square of the sequence length. Together that is $5 + \frac{16}{n}$, and a little for the
# norms.
#
# With own tokens, a rank keeps only its part of $x$ and of the two sums. But the products need the results
# of the norms *gathered*, and those two tensors stay whole, whatever $n$ is. That is $2 + \frac{19}{n}$. If
# backward gathers a second time, their parts are kept instead, and everything shrinks with $n$:
# $\frac{21}{n}$. That is what the paper does. It overlaps the second gathering with another product of
# backward, so that a quarter more bytes need not cost more time.
#
# (It counts 34 bytes for each element of $x$ in such a block, in 16 bits and with dropout, besides the
# attention weights. Of these, 10 are outside of the pairs.)
#
# Norms usually have weights, and every rank keeps a copy of them. Here is the second half of the block, whose norm
# now has a scale for each column. With own tokens, does each rank find the whole gradient of the scale?


# %%
def scale_gradient(form):
    """The gradient of the norm's scale, as this rank finds it."""
    enter, leave = FORMS[form]
    *_, w_up, w_down = my_shards(*block_weights(wide))
    x = torch.randn(many, wide, generator=torch.Generator().manual_seed(2))
    x = x if form == "replicated" else x.tensor_split(dist.get_world_size())[dist.get_rank()]
    scale = torch.ones(wide, requires_grad=True)
    y = leave(F.gelu(enter(scale * norm(x), w_up)) @ w_down)
    y.square().sum().backward()
    return scale.grad


if pair_works:
    whole, parts = (list(run(scale_gradient, 4, form)) for form in ("replicated", "own tokens"))
    for form, found in (("replicated", whole), ("own tokens", parts)):
        print(f"{form}: the same on all ranks: {all(torch.equal(one, found[0]) for one in found)}")
    print("own tokens, added up over ranks: the whole:", torch.allclose(sum(parts), whole[0], rtol=1e-4))

# %% [markdown]
# It does not: a rank has seen its own tokens only. So the gradients of all weights outside of the pairs have to
# be added up over the ranks, once a step. Leave that out and nothing fails, but the ranks' copies drift apart.
# (Megatron-LM does it [at the end of
# backward](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/distributed/finalize_model_grads.py).)
#
# ## The loss over a vocabulary
#
# At the top of the model, one more product turns each token's activations into **logits**, one for every
# entry of the vocabulary. Cut its weight by columns, and every rank has the logits of its part of the
# vocabulary. How large are they all together?

# %%
length, vocabulary = 8192, 128_000  # of Llama 3
print(f"logits of one sequence in float32: {4 * length * vocabulary / 1e9:.1f} GB")
print(f"activations between its blocks, in bf16: {2 * length * 4096 / 1e6:.0f} MB")

# %% [markdown]
# ([Llama 3](https://arxiv.org/abs/2407.21783); its smallest model has a width of 4096.) Gathered logits would be
# sixty times as large as what travels between the blocks, and every rank would need the memory. But the loss of
# a token is one number. For a row of logits $l$ with the target $t$ it is
#
# $$-\log \mathrm{softmax}(l)_t = \log \sum_j e^{l_j} - l_t.$$
#
# **Predict:** how many numbers does a rank need from the other ranks, for each row of logits?
#
# <details><summary>All of them: a softmax needs the whole row</summary>
#
# No: it needs the whole row only in a sum, and each rank can add up its own part.
# </details>
#
# <details><summary>None: the mean of the ranks' losses is the loss</summary>
#
# No: each rank's softmax would be that of its own part of the vocabulary, with another sum.
# </details>
#
# <details><summary>A few, however large the vocabulary is</summary>
#
# Yes: partial sums will do, and the logit of the target.
# </details>
#
# The sum over $j$ needs only one partial sum from each rank, and $l_t$ is known to the rank whose part of the
# vocabulary has the target. That would be two numbers. Try the formula with logits that are not small:

# %%
for top in (10.0, 100.0, 1000.0, -1000.0):
    logits = torch.tensor([top, top - 1, top - 2])
    naive = logits.exp().sum().log() - logits[0]
    largest = logits.max()
    shifted = (logits - largest).exp().sum().log() + largest - logits[0]
    print(f"logits around {top:5.0f}: as it stands {naive:.4f}, with the largest subtracted {shifted:.4f}")

# %% [markdown]
# $e^{100}$ is beyond float32, and for very negative logits all exponentials are rounded to zero. Libraries
# therefore subtract the row's largest logit $m$ first, and add it again after the logarithm:
# $\log \sum_j e^{l_j} = m + \log \sum_j e^{l_j - m}$. That makes three numbers a row. With one call for
# each there is also an order: partial sums can be added up only if all ranks have subtracted the same $m$,
# so the maximum comes first.
#
# ![Two ranks, each with a row of logits. Rank 0 has 2, 7, 1 and rank 1 has 4, 5; the target is the 5. First
# the largest, by MAX: 7 and 5 become 7. Then the sum of exp(l − 7), by SUM: each adds its own. Then the
# logit of the target, by SUM: 0 from rank 0 and 5 from rank 1. Each all-reduce carries one number a
# row.](../imgs/vocab_parallel_loss.png)
#
# And backward? Differentiate the loss of a row with respect to $l_j$, on paper. Which parts of the derivative does
# a rank already have after forward, and which messages does it need for the rest?
#
# ## Exercise: vocab_parallel_cross_entropy
#
# `logits_shard` has all rows, and this rank's columns of the vocabulary, as `tensor_split` cuts it.
# `targets` has the number of the right entry for each row, counted over the *whole* vocabulary, and is the
# same on every rank. Return the mean loss over rows, on every rank.
#
# - Each rank gets its columns of the gradient of the whole logits. Every rank computes the same loss, and may
#   make it part of a larger sum.
# - `dist.all_reduce` is allowed. No call carries more than one element for each row, and all calls together
#   carry at most four for each. One more call, of a single element, may find out how large the vocabulary is.
# - Large logits do not overflow, and very negative ones do not vanish.
# - With a small vocabulary, some ranks have no columns at all.


# %%
def vocab_parallel_cross_entropy(logits_shard: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of rows of logits, of which every rank has some columns."""
    ### BEGIN SOLUTION
    return CrossEntropy.apply(logits_shard, targets)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        rows, columns = logits.shape
        size = torch.tensor(columns)
        dist.all_reduce(size)
        mine = torch.arange(int(size)).tensor_split(dist.get_world_size())[dist.get_rank()]

        nothing = logits.new_full((rows, 1), -torch.inf)  # for ranks without columns
        largest = torch.cat([logits, nothing], 1).amax(1)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        exponentials = (logits - largest[:, None]).exp()
        sums = added_up(exponentials.sum(1))
        hot = (targets[:, None] == mine).to(logits.dtype)
        hit = added_up((logits * hot).sum(1))

        ctx.save_for_backward(exponentials / sums[:, None] - hot)
        return (sums.log() + largest - hit).mean()

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope / len(slope), None

    ### END SOLUTION


loss_works = check(vocab_parallel_cross_entropy)
loss_works

# %% [markdown]
# Take 64 rows and a vocabulary of 1000, on 4 ranks. How many elements does a rank send, and how many would an
# all-gather of the logits send?


# %%
def loss_of(rows, vocabulary):
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(29)
    logits, targets = torch.randn(rows, vocabulary), torch.randint(vocabulary, (rows,))
    shard = logits.tensor_split(n, 1)[rank].clone().requires_grad_()
    loss = vocab_parallel_cross_entropy(shard, targets)
    mark("backward begins")
    loss.backward()
    return loss.item() - F.cross_entropy(logits, targets).item()


if loss_works:
    for vocabulary in (1000, 10_000):
        done = run(loss_of, 4, 64, vocabulary)
        forward, backward = done.trace.split_at("backward begins")
        print(
            f"vocabulary {vocabulary:6,}: {forward.max_sent_elements:,} elements in forward,"
            f" {backward.max_sent_elements} in backward; an all-gather {3 * 64 * vocabulary // 4:,};"
            f" like F.cross_entropy: {max(map(abs, done)) < 1e-5}"
        )

# %% [markdown]
# However large the vocabulary is, three numbers a row are reduced, for which a rank sends
# $3 \cdot 64 \cdot 2 \, \frac{n-1}{n} = 288$ elements. Ours sends one more, to find out how large the vocabulary is.
# Backward sends none. The derivative is $\mathrm{softmax}(l)_j$, less 1 for the target, and each rank can work out
# its own part of it from the sum that it has kept. (Megatron-LM does it
# [like this](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/tensor_parallel/cross_entropy.py),
# and in torch it is
# [`loss_parallel`](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html#torch.distributed.tensor.parallel.loss_parallel).)
#
# ## All of it together
#
# A block with your $f$ and $g$, and your loss on top: four ranks learn to predict the next of 50 symbols.
# The embedding is replicated; all other weights are cut. One process does the same for comparison.
#
# **Predict:** what has to be done with the embedding's gradients, which every rank has?
#
# <details><summary>They have to be averaged, as in data parallelism</summary>
#
# No: there each rank has other data. Here all ranks have the same text.
# </details>
#
# <details><summary>They have to be added up: a rank knows a part</summary>
#
# No: gradients are partial only inside of a pair, and the backward of $f$ has added those up.
# </details>
#
# <details><summary>Nothing: they are the same everywhere</summary>
#
# Yes: outside of the pairs every rank computes the same, from the same numbers.
# </details>

# %%
SYMBOLS, STEPS = 50, 30


def text():
    """A text in which each symbol mostly decides the next, and its successors."""
    generator = torch.Generator().manual_seed(3)
    symbols, follows = [0], torch.randperm(SYMBOLS, generator=generator)
    for surprise in torch.rand(128, generator=generator) < 0.1:
        symbols.append(int(surprise) * 7 or int(follows[symbols[-1]]))
    symbols = torch.tensor(symbols)
    return symbols[:-1], symbols[1:]


def training(weights, head, heads, enter, leave, loss_of):
    torch.manual_seed(30)
    embedding = (0.5 * torch.randn(SYMBOLS, width)).requires_grad_()
    optimizer = torch.optim.SGD([embedding, *weights, head], lr=0.3)
    (given, wanted), losses = text(), []
    for _ in range(STEPS):
        y = block(embedding[given], weights, heads, enter, leave)
        loss = loss_of(enter(norm(y), head), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def head_weight():
    return 0.1 * torch.randn(width, SYMBOLS, generator=torch.Generator().manual_seed(4))


def train_in_ranks():
    rank, n = dist.get_rank(), dist.get_world_size()
    head = head_weight().tensor_split(n, 1)[rank].clone().requires_grad_()
    weights = my_shards(*block_weights(width))
    return training(weights, head, HEADS // n, replicated, g, vocab_parallel_cross_entropy)


def train_alone():
    weights = [w.requires_grad_() for w in block_weights(width)]
    return training(weights, head_weight().requires_grad_(), HEADS, plain, lambda y: y, F.cross_entropy)


if pair_works and loss_works:
    alone = train_alone()
    together = run(train_in_ranks, 4, seconds=120)
    equal = all(torch.allclose(torch.tensor(losses), torch.tensor(alone), atol=1e-3) for losses in together)
    print("the same losses to 1e-3 on all ranks:", equal)
    print("the loss has fallen to a fifth:", alone[-1] < alone[0] / 5)
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot(alone, lw=5, alpha=0.4, label="one process")
    axes.plot(together[0], ls="--", color="black", label="four ranks, tensor parallel")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    plt.show()

# %% [markdown]
# Outside of the pairs every rank computes the same, so the gradient of the embedding is the same
# everywhere, thanks to the all-reduce in the backward of $f$. With sequence parallelism it would have to be
# added up, like that of the scale above, and the loss has to gather its tokens before the product with the
# vocabulary.
#
# ## Compared with torch's own
#
# Torch cuts a finished module according to a plan:
# [`parallelize_module`](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html) replaces the
# weights of the named layers with *distributed tensors*, and puts $f$ and $g$ where the plan says.
#
# Does torch's MLP make other calls than yours, or calls that carry more?


# %%
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(31)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def made_by_torch():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    module = parallelize_module(MLP(), mesh, plan)
    return module, lambda: module.up.weight.grad.to_local().T


def made_by_hand():
    rank, n = dist.get_rank(), dist.get_world_size()
    module = MLP()  # nn.Linear keeps (out, in)
    w_in = module.up.weight.detach().T.tensor_split(n, 1)[rank].clone().requires_grad_()
    w_out = module.down.weight.detach().T.tensor_split(n, 0)[rank].clone().requires_grad_()
    return lambda x: parallel_mlp(x, w_in, w_out), lambda: w_in.grad


def one_step(make, x, steps=1):
    """The loss, the gradients of x and of the first shard, and the time of the fastest step."""
    layer, gradient = make()
    taken = []
    for step in range(steps):
        x = x.detach().requires_grad_()
        dist.barrier()
        if step == 0:
            mark("step begins")
        started = time.perf_counter()
        loss = layer(x).square().mean()
        if step == 0:
            mark("backward begins")
        loss.backward()
        if step == 0:
            first = loss.item(), x.grad, gradient().clone()
            mark("step ends")
        taken.append(time.perf_counter() - started)
    return *first, min(taken[1:] or taken)


def calls_of_step(trace):
    step = trace.split_at("step begins")[1].split_at("step ends")[0]
    return [(op.kind, trace.given(op)) for op in step.operations[0]]


if mlp_works:
    yours, torchs = (run(one_step, 2, make, x, seconds=120) for make in (made_by_hand, made_by_torch))
    for what, place in (("loss", 0), ("gradient of x", 1), ("gradient of the first shard", 2)):
        pairs = [(torch.as_tensor(a[place]), torch.as_tensor(b[place])) for a, b in zip(yours, torchs)]
        print(f"equal to torch's: {what}: {all(torch.allclose(a, b, atol=1e-6) for a, b in pairs)}")
    print("yours:  ", calls_of_step(yours.trace))
    print("torch's:", calls_of_step(torchs.trace))

# %% [markdown]
# Torch makes the same two calls, with the same numbers of elements. A plan is shorter than code, and for
# sequence parallelism there is a `SequenceParallel`. How much time does the plan cost on this computer?

# %% tags=["nbval-ignore-output"]
if mlp_works:
    seconds = {
        name: max(found[3] for found in run(one_step, 2, make, x, 30, seconds=120))
        for name, make in (("yours", made_by_hand), ("torch's", made_by_torch))
    }
    for name, taken in seconds.items():
        print(f"{name:8} {taken / seconds['yours']:.2f} of the time of your fastest step")

# %% tags=["claim"]
assert seconds["torch's"] > seconds["yours"], "in so small a layer, the look-ups of distributed tensors show"

# %% [markdown]
# For every operation, distributed tensors look up how its result is cut. In a layer as small as this one
# that shows; the larger the matrices are, the less it does.
#
# ## Multiply while it travels
#
# Back to time. With sequence parallelism, each pair begins with an all-gather, and the product waits for
# it. Here it is on four simulated ranks, which compute by sleeping, as in chapter 16: first the ring of
# chapter [05](05_all_gather.ipynb), then the products, one piece after another.

# %%
PIECE = torch.zeros(1000)  # 4 kB
ALPHA, BETA = 1e-6, 1e-9  # 5 µs for such a piece


def computing(seconds):
    """Return a product that takes this long for each piece."""

    def multiply(piece):
        time.sleep(seconds * len(piece) / len(PIECE))
        return piece

    return multiply


def gather_then_multiply(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [torch.empty_like(x_shard) for _ in range(n)]
    pieces[rank] = x_shard
    for step in range(n - 1):
        request = dist.isend(pieces[(rank - step) % n], (rank + 1) % n)
        dist.recv(pieces[(rank - step - 1) % n], (rank - 1) % n)
        request.wait()
    return torch.cat([multiply(piece) for piece in pieces])


def layer(how, seconds):
    return how(PIECE, computing(seconds)).sum().item()


in_turn = simulate(layer, 4, gather_then_multiply, 4e-6, alpha=ALPHA, beta=BETA)
print(f"a piece travels for 5 µs, and its product takes 4 µs: {1e6 * in_turn.seconds:.0f} µs in all")
timeline(in_turn)

# %% [markdown]
# Virtual time goes from left to right. For 15 µs no rank computes, and for 16 µs no link is used. Which piece
# could each rank multiply from the start?
#
# **Predict:** if each piece is multiplied while the next one travels, how long does the layer take?
#
# <details><summary>16 µs, for the four products alone</summary>
#
# No: a piece takes longer to arrive than the one before takes to multiply, so the products wait.
# </details>
#
# <details><summary>19 µs</summary>
#
# Yes: three transfers one after the other, 15 µs, and then the product of the last piece.
# </details>
#
# <details><summary>31 µs, as before: the work is the same</summary>
#
# No: while a link is busy, a rank can multiply a piece that it has.
# </details>
#
# And if the product of a piece takes 2 µs, or 10 µs?
#
# ## Exercise: gather_matmul
#
# Every rank has a piece `x_shard` of the rows of $x$, all of one shape, and a function `multiply` of its own,
# which multiplies rows with the rank's columns. Return the products of all ranks' pieces in rank order, one
# below another, as one tensor. There is no backward pass.
#
# - Call `multiply(piece)` for each piece, while the next piece travels.
# - Point-to-point messages only, and to neighbours on the ring only; a rank sends $n - 1$ pieces.
# - `check` runs it on real ranks, and also on simulated ones, where a product takes half as long as its
#   piece travels, or twice as long. There, the virtual time may be at most that of all $n$ products or of all
#   $n - 1$ transfers, whichever is longer, plus that of one more product.


# %%
def gather_matmul(x_shard: torch.Tensor, multiply: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The products of all ranks' pieces, each computed while the next one travels."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    for step in range(n):
        moving, received = [], torch.empty_like(piece)
        if step < n - 1:
            moving = [dist.isend(piece, (rank + 1) % n), dist.irecv(received, (rank - 1) % n)]
        products[(rank - step) % n] = multiply(piece)
        for request in moving:
            request.wait()
        piece = received
    return torch.cat(products)
    ### END SOLUTION


overlaps = check(gather_matmul)
overlaps

# %%
if overlaps:
    for product in (2e-6, 4e-6, 10e-6):
        times = [
            simulate(layer, 4, how, product, alpha=ALPHA, beta=BETA).seconds
            for how in (gather_then_multiply, gather_matmul)
        ]
        in_turn, yours = (f"{1e6 * seconds:.0f} µs" for seconds in times)
        print(f"a product takes {1e6 * product:2.0f} µs: in turn {in_turn}, yours {yours}")
    display(timeline(simulate(layer, 4, gather_matmul, 4e-6, alpha=ALPHA, beta=BETA)))

# %% [markdown]
# Now the links are busy until all pieces are there. With products of 2 µs it is 15 + 2. With products of 10 µs
# it is the transfers that are hidden: 4 · 10.
#
# The mirror image ends a pair: multiply the rows for one rank's tokens, and send that partial sum on while
# the next is multiplied. A compiler for TPUs does both ([Wang and others
# 2023](https://doi.org/10.1145/3567955.3567959)). PyTorch has them as [async tensor
# parallelism](https://discuss.pytorch.org/t/distributed-w-torchtitan-introducing-async-tensor-parallelism-in-pytorch/209487),
# which made the forward pass of Llama 3 up to 29 % faster, and whole steps up to 8 %.
#
# ### What spoils it
#
# **Predict:** a piece again travels for 5 µs and takes 4 µs to multiply, now on 8 ranks. Which of these makes the
# pieces slower than one all-gather and one product: a latency of 20 µs instead of 1, a start-up cost of 5 µs for
# every product, a rank that begins 20 µs late?
#
# <details><summary>Only the latency</summary>
#
# No: one product pays the start-up cost once, and eight pieces pay it eight times.
# </details>
#
# <details><summary>The latency and the start-up cost</summary>
#
# Yes: the ring pays a latency in each step, and a start-up cost for each piece. A late rank holds up both
# ways alike.
# </details>
#
# <details><summary>The latency and the late rank</summary>
#
# No: the all-gather also waits for the late rank, so both ways lose the same 20 µs.
# </details>


# %%
def whole_product(x_shard, multiply):
    """One all-gather, by the library, and one product."""
    whole = x_shard.new_empty(dist.get_world_size() * len(x_shard))
    dist.all_gather_into_tensor(whole, x_shard)
    return multiply(whole)


def with_trouble(how, start, late):
    if dist.get_rank() == 0:
        time.sleep(late)

    def multiply(rows):
        time.sleep(start + 4e-6 * len(rows) / len(PIECE))
        return rows

    return how(PIECE, multiply).sum().item()


if overlaps:
    for trouble, alpha, start, late in (
        ("none", 1e-6, 0, 0),
        ("a latency of 20 µs", 20e-6, 0, 0),
        ("each product needs 5 µs to start", 1e-6, 5e-6, 0),
        ("rank 0 begins 20 µs late", 1e-6, 0, 20e-6),
    ):
        whole, pieces = (
            1e6 * simulate(with_trouble, 8, how, start, late, alpha=alpha, beta=BETA).seconds
            for how in (whole_product, gather_matmul)
        )
        print(f"{trouble:33} in one {whole:4.0f} µs, in pieces {pieces:4.0f} µs")

# %% [markdown]
# - **Latency**: a ring pays it $n - 1$ times. A whole all-gather is free to use another algorithm, here one with
#   $\log_2 n$ rounds, and that can be faster than the ring's transfers alone. The pieces still hide the
#   products, but that gains less than the ring costs.
# - **Small products**: each piece is a product of its own. A GPU that needs many rows to run at its peak, or
#   some time to start, pays $n$ times. This alone can cost more than the overlap gains.
# - **A late rank** holds up its neighbours either way: overlap cannot hide waiting for a rank that is not there.
# - **Shared resources**, which the simulation does not have: on a GPU, a collective takes some of the
#   processors that the product would use. PyTorch's async tensor parallelism leaves the transfers to the
#   GPU's [copy engines](https://danielvegamyhre.github.io/ml/performance/2025/05/26/async-tp.html), which do
#   nothing else.
#
# ## Summary
#
# Tensor parallelism cuts the weights of each layer, its work and most of its activations into $n$ parts:
#
# - First columns, then work on each column or head alone, then rows. Between $f$ and $g$ nothing is sent.
#   For each block, they cost two all-reduces in forward and two in backward, of the size of the
#   activations.
# - Communication takes $\frac{e(n-1)}{6h} \cdot \frac{F}{B}$ of the computation's time, whatever the batch.
#   So $n$ is rarely more than the number of GPUs that NVLink connects: often 8, in a
#   [rack](https://www.nvidia.com/en-us/data-center/gb200-nvl72/) up to 72.
# - Sequence parallelism sends the same bytes and cuts what is kept outside of the pairs. The gradients of
#   weights there have to be added up.
# - If the vocabulary is cut, the loss needs three numbers a row: the largest logit, the sum, the target's
#   logit.
# - Multiply one piece while the next one travels, and the longer of the two hides the shorter.
#
# **Where this is used:** in [Megatron-LM](https://github.com/NVIDIA/Megatron-LM), and in [torchtitan's
# Llama](https://github.com/pytorch/torchtitan) by torch's own plan. Servers such as
# [vLLM](https://docs.vllm.ai/en/v0.8.3/serving/distributed_serving.html) cut models in the same way, for
# memory and for the time that a single answer takes. To read on: the chapters on sharded products in [How
# to Scale Your Model](https://jax-ml.github.io/scaling-book/sharded/), which is about TPUs, and on tensor
# parallelism in the [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook).
#
# ### Check yourself
#
# <details><summary>A model has 64 query heads, but only 8 heads of keys and values, each shared by 8 queries. What happens with 16 ranks?</summary>
#
# Each rank has 4 query heads, but there is only half a head of keys and values for each rank. So two ranks keep
# the same head. Each knows only what its own queries contribute to the gradient of that head's columns, so
# the two have to add up their gradients.
# </details>
#
# <details><summary>The second product of an MLP has a bias. Where is it added, and what goes wrong if each rank adds it to its part?</summary>
#
# After g. Added before the all-reduce, it would be in the sum n times.
# </details>
#
# <details><summary>One dropout comes after g, and another inside the attention, on each rank's own heads. Which of the two needs the same random numbers on all ranks?</summary>
#
# The one after g, where all ranks must go on with the same x. Inside, each rank has other heads, and should
# draw other numbers. That is why Megatron-LM keeps two states of its random generator.
# </details>
#
# <details><summary>The largest logit and the sum need two calls, one after the other. Would one call do, in which ranks combine pairs of both?</summary>
#
# Yes: of (m, s) and (m', s') keep the larger m, and multiply the other s by e to the power of the smaller m
# minus the larger before you add the two. That is a reduction like any other and works in any order, but
# `dist.all_reduce` does not have it. Attention that is computed block by block combines its blocks in this way.
# </details>
#
# **Next:** [27 · Context parallelism](27_context_parallel.ipynb), for a sequence that is too long for one rank.
