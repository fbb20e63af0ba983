# %% [markdown]
# # 16 · Scale math
#
# Does a model of 70 billion parameters fit on 64 GPUs of 80 GB? How many days will it train on two
# trillion tokens? And which of its messages are too slow for the network between the machines? One page
# of arithmetic answers all three, before anything runs.
#
# **You will learn** to say on paper how large a model is, how much memory its training takes, how long
# it computes, and which communication can be hidden behind that computation: for data parallelism, for
# ZeRO, for tensor and for pipeline parallelism. Each formula is derived in a few lines, and then counted
# on real modules.
#
# **You need** chapters [07](07_all_reduce.ipynb) (an all-reduce is a reduce-scatter and an all-gather),
# [13](13_cost_models.ipynb) and [14](14_bandwidth.ipynb).
#
# **Time:** 2 hours, and 8 exercises. All eight are plain functions of one to three lines; nothing is sent
# in them.

# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from grader import check, hint, predict, run, simulate
from grader.api.calculator import calculator

# %% [markdown]
# ## How large is a block?
#
# A language model is a pile of equal **blocks**. Here is one. Between blocks every token is a row of $h$
# numbers; $h$ is called the *hidden size*.
#
# The argument `glu` says whether the MLP is *gated*
# ([Shazeer 2020](https://arxiv.org/abs/2002.05202)): then its first matrix is twice as wide, and one half
# of what comes out is multiplied by the other half.


# %%
class Block(nn.Module):
    def __init__(self, h, glu, heads=4):
        super().__init__()
        self.heads, self.glu = heads, glu
        self.norm1 = nn.LayerNorm(h, elementwise_affine=False)  # without parameters
        self.norm2 = nn.LayerNorm(h, elementwise_affine=False)
        self.qkv = nn.Linear(h, 3 * h, bias=False)  # queries, keys and values
        self.out = nn.Linear(h, h, bias=False)
        self.up = nn.Linear(h, 8 * h if glu else 4 * h, bias=False)  # gate and up, or up
        self.down = nn.Linear(4 * h, h, bias=False)

    def forward(self, x):  # (sequences, tokens, h)
        split = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        ]
        heard = F.scaled_dot_product_attention(*split, is_causal=True)
        x = x + self.out(heard.transpose(1, 2).flatten(2))
        y = self.up(self.norm2(x))
        if self.glu:
            gate, y = y.chunk(2, -1)
            y = F.silu(gate) * y
        else:
            y = F.gelu(y)
        return x + self.down(y)


# %% [markdown]
# **Predict:** how many parameters does it have, in multiples of $h^2$? Go through the four matrices.
#
# We count on PyTorch's *meta* device. Tensors there have a shape and no memory, so a model may be as large
# as you like.

# %%
h = 4096
for glu in (False, True):
    with torch.device("meta"):
        block = Block(h, glu)
    parts = {name: p.numel() / h**2 for name, p in block.named_parameters()}
    print(f"GLU: {glu!s:5}", parts, "in all", sum(parts.values()))

# %% [markdown]
# ## Exercise: transformer_block_params
#
# Parameters of a block, matrices only. A whole number, exactly: in this chapter everything that is
# *counted* is an `int`. (A float has 16 digits. The number of operations of a training run has more.)


# %%
def transformer_block_params(hidden: int, glu: bool) -> int:
    """Parameters of a transformer block, matrices only."""
    ### BEGIN SOLUTION
    attention = 4 * hidden * hidden
    mlp = (12 if glu else 8) * hidden * hidden
    return attention + mlp
    ### END SOLUTION


block_known = check(transformer_block_params)
block_known

# %% [markdown]
# What did we leave out? Take PyTorch's own block, with biases and with norms that have parameters.
# **Predict:** how much is missing, in per cent?

# %%
if block_known:
    for h, heads in ((64, 4), (768, 12), (12288, 96)):
        whole = nn.TransformerEncoderLayer(h, heads, 4 * h, device="meta")
        counted = sum(p.numel() for p in whole.parameters())
        formula = transformer_block_params(h, glu=False)
        print(
            f"h = {h:5}: {counted:,} parameters, {counted - formula:,} ="
            f" {(counted - formula) / h:.0f} h more, {counted / formula - 1:.2%}"
        )

# %% [markdown]
# $13h$ more: small beside $12h^2$, and the smaller the larger the model. That is why one leaves them out.
#
# ## From a block to a model
#
# Beside its blocks a model has tables whose rows have $h$ numbers each:
#
# - the **embedding**: a row for every entry of the vocabulary;
# - the **head**, which makes scores for every entry out of the last row: as large again, unless it is
#   **tied**, which means that it *uses* the embedding's matrix;
# - **learned positions**, in some models: a row for every position.
#
# ## Exercise: model_params


# %%
def model_params(
    hidden: int, layers: int, vocab: int, glu: bool, tied_head: bool, max_positions: int = 0
) -> int:
    """Parameters of a model: blocks, embedding, head, learned positions."""
    ### BEGIN SOLUTION
    rows = vocab + max_positions
    if not tied_head:
        rows += vocab
    return layers * transformer_block_params(hidden, glu) + rows * hidden
    ### END SOLUTION


model_known = check(model_params)
model_known

# %% [markdown]
# ### Does it agree with what was published?
#
# | model | hidden | layers | vocabulary | form | source |
# |---|---|---|---|---|---|
# | GPT-2 (four sizes) | 768 to 1600 | 12 to 48 | 50,257 | no gate, tied head, 1024 learned positions | [paper](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), [code](https://github.com/openai/gpt-2/blob/master/src/model.py) |
# | GPT-3 | 12,288 | 96 | 50,257 | as GPT-2, 2048 positions | [paper, table 2.1](https://arxiv.org/abs/2005.14165) |
# | LLaMA (two sizes) | 4096, 8192 | 32, 80 | 32,000 | gate, head of its own, positions computed | [paper, table 2](https://arxiv.org/abs/2302.13971) |
#
# **Predict:** where will our formula be good, and where not?

# %%
published = {  # arguments of model_params, and what the authors say, in billions
    "GPT-2 small": ((768, 12, 50257, False, True, 1024), 0.124),
    "GPT-2 medium": ((1024, 24, 50257, False, True, 1024), 0.355),
    "GPT-2 large": ((1280, 36, 50257, False, True, 1024), 0.774),
    "GPT-2 XL": ((1600, 48, 50257, False, True, 1024), 1.558),
    "GPT-3": ((12288, 96, 50257, False, True, 2048), 175.0),
    "LLaMA 7B": ((4096, 32, 32000, True, False), 6.7),
    "LLaMA 65B": ((8192, 80, 32000, True, False), 65.2),
}
if model_known:
    for name, (arguments, says) in published.items():
        billions = model_params(*arguments) / 1e9
        print(
            f"{name:13} formula {billions:8.3f} billion, published {says:7.3f},"
            f" off by {billions / says - 1:+7.2%}"
        )

# %% [markdown]
# The GPTs agree to half a per cent. Of LLaMA it counts almost a third too many.
#
# > **A mistake that was published.** GPT-2's
# > [paper](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)
# > says 117 million for the small model and 345 million for the medium one. The authors [corrected
# > that](https://github.com/openai/gpt-2#readme) later: "our original parameter counts were wrong due
# > to an error". Two lines of arithmetic would have found it; they just did.
#
# ### What our formula does not know
#
# *LLaMA's MLP is narrower.* A gated MLP of width $4h$ has $12h^2$ parameters and not $8h^2$. To have
# $8h^2$ again, people make it $\frac{2}{3} \cdot 4h$ wide, and round that up to a multiple of 256
# ([the code](https://github.com/meta-llama/llama/blob/main/llama/model.py)). So the blocks of our formula with
# a gate, $16h^2$, are larger than those of most models with a gate, which are near $12h^2$.
#
# *Grouped heads.* In Llama 3 8B ([paper, table 3](https://arxiv.org/abs/2407.21783)) four heads of
# queries share one of keys and values: those two matrices have a quarter of the size. Its MLP is 14,336
# wide.
#
# *Norms and biases.* Here are models with all of that, made of real modules. **Predict:** which of the
# three matters most?


# %%
def llama(hidden, layers, vocab, width, keys_and_values):
    """All that has parameters in a model of the LLaMA family, on the meta device."""

    def block():
        return nn.ModuleList(
            [nn.Linear(hidden, hidden, bias=False) for _ in ("queries", "output")]
            + [nn.Linear(hidden, keys_and_values, bias=False) for _ in ("keys", "values")]
            + [nn.Linear(hidden, width, bias=False) for _ in ("gate", "up")]
            + [nn.Linear(width, hidden, bias=False), nn.RMSNorm(hidden), nn.RMSNorm(hidden)]
        )

    with torch.device("meta"):
        blocks = nn.ModuleList(block() for _ in range(layers))
        head = nn.Linear(hidden, vocab, bias=False)
        return nn.ModuleList([nn.Embedding(vocab, hidden), blocks, nn.RMSNorm(hidden), head])


def gpt(hidden, layers, vocab, positions, heads):
    """The same of a GPT; its head is the embedding."""
    with torch.device("meta"):
        blocks = [nn.TransformerEncoderLayer(hidden, heads, 4 * hidden) for _ in range(layers)]
        return nn.ModuleList(
            [nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden), *blocks, nn.LayerNorm(hidden)]
        )


def count(model):
    return sum(p.numel() for p in model.parameters())


width = -(-(2 * 4 * 4096 // 3) // 256) * 256  # two thirds of 4h, rounded up
print("width of LLaMA 7B's MLP:", width)
exact = {
    "GPT-2 small": count(gpt(768, 12, 50257, 1024, 12)),
    "GPT-2 XL": count(gpt(1600, 48, 50257, 1024, 25)),
    "GPT-3": count(gpt(12288, 96, 50257, 2048, 96)),
    "LLaMA 7B": count(llama(4096, 32, 32000, width, 4096)),
    "Llama 3 8B": count(llama(4096, 32, 128256, 14336, 1024)),
}
for name, number in exact.items():
    print(f"{name:12} {number:15,}")

# %%
if model_known:
    small = model_params(768, 12, 50257, False, True, 1024)
    print("GPT-2 small: biases and norms", exact["GPT-2 small"] - small, "=", 12 * 13 * 768 + 2 * 768)
    llama_notes = model_params(4096, 32, 32000, True, False)
    print(f"LLaMA 7B with 16h²: {llama_notes / exact['LLaMA 7B'] - 1:+.1%}")
    print(
        f"LLaMA 7B with 12h²: {model_params(4096, 32, 32000, False, False) / exact['LLaMA 7B'] - 1:+.1%}"
    )
    narrower = 32 * 3 * 4096 * (4 * 4096 - width)
    print(
        "16h² less the narrower MLP, and 65 norms:",
        llama_notes - narrower + 65 * 4096 == exact["LLaMA 7B"],
    )
    llama3 = model_params(4096, 32, 128256, True, False)
    print(
        f"Llama 3 8B with 16h²: {llama3 / exact['Llama 3 8B'] - 1:+.1%}, of which grouped heads"
        f" {32 * 2 * 4096 * (4096 - 1024) / exact['Llama 3 8B']:.1%}, narrower MLP"
        f" {32 * 3 * 4096 * (4 * 4096 - 14336) / exact['Llama 3 8B']:.1%}"
    )

# %% [markdown]
# A formula is as good as what you know about the model. Ask for the width of the MLP first.
#
# ## How much memory? What stays
#
# Training in *mixed precision* with Adam keeps five numbers for each parameter:
#
# | | dtype | bytes |
# |---|---|---|
# | weight, to compute with | bfloat16 | 2 |
# | gradient | bfloat16 | 2 |
# | weight, the exact copy | float32 | 4 |
# | momentum | float32 | 4 |
# | variance | float32 | 4 |
#
# ([Micikevicius and others 2018](https://arxiv.org/abs/1710.03740) explain the exact copy: a small
# step would be rounded away in 16 bits. [Rajbhandari and others 2020](https://arxiv.org/abs/1910.02054)
# count the bytes.)
#
# **Predict:** how many bytes does one step of training keep of a 4096 × 4096 matrix?

# %%
h = 4096
with torch.device("meta"):
    master = nn.Parameter(torch.empty(h, h))
    optimizer = torch.optim.Adam([master])
    master.grad = torch.empty(h, h)
    optimizer.step()

weight = gradient = torch.empty(h, h, dtype=torch.bfloat16, device="meta")
kept = {"weight": weight, "gradient": gradient, "master": master}
kept |= {name: t for name, t in optimizer.state[master].items() if t.dim() == 2}
for name, tensor in kept.items():
    print(
        f"{name:10} {str(tensor.dtype):15} {tensor.numel() / h**2:.0f} h² numbers,"
        f" {tensor.nbytes / h**2:.0f} h² bytes"
    )
print("in all", sum(tensor.nbytes for tensor in kept.values()) / h**2, "h² bytes")

# %% [markdown]
# > **Tempting, and wrong.** "Adam's state of an $h \times h$ matrix is $6h^2$." Three
# > lines above say: $3h^2$ *numbers*, or $12h^2$ *bytes*. Where does 6 come from? A float32 is as long as
# > two bfloat16, so in units of two bytes it is 6. A sum like $h^2 + h^2 + 6h^2$ is right in those units,
# > and wrong by a factor of two as bytes, of $\frac{8}{5}$ as numbers. Say the unit.
#
# ## Exercise: training_state_bytes


# %%
def training_state_bytes(params: int) -> int:
    """Bytes of weights, gradients and Adam's state in mixed precision."""
    ### BEGIN SOLUTION
    weights, gradients = 2 * params, 2 * params
    optimizer = 3 * 4 * params
    return weights + gradients + optimizer
    ### END SOLUTION


state_known = check(training_state_bytes)
state_known

# %% [markdown]
# **Predict:** which of the models above can be trained on a GPU with 80 GB, if nothing but this is
# counted?

# %%
if state_known:
    for name, number in exact.items():
        gigabytes = training_state_bytes(number) / 1e9
        print(f"{name:12} {gigabytes:8,.1f} GB, {'fits' if gigabytes <= 80 else 'does not fit'}")

# %% [markdown]
# Data parallelism does not help at all: every replica keeps everything. **ZeRO** does: the replicas *share
# out* what stays, each keeps one part of DP, and fetches the rest when it is needed. Stage 1 shares out
# the optimizer's state, stage 2 the gradients, too, stage 3 also the weights.
#
# ![Bytes of one parameter on each of 8 replicas, as stacked bars. Without ZeRO: weights 2, gradients 2, optimizer 12, together 16. ZeRO-1: 2, 2 and 1.5, together 5.5. ZeRO-2: 2, 0.25 and 1.5, together 3.75. ZeRO-3: 0.25, 0.25 and 1.5, together 2](../imgs/zero_stages.png)

# %%
for dp in (8, 64, 512):
    stages = (16, 4 + 12 / dp, 2 + 14 / dp, 16 / dp)
    print(f"{dp:3} replicas, without ZeRO and with 1, 2, 3:", *(f"{b:5.2f}" for b in stages))

# %% [markdown]
# ## How much memory? What comes and goes
#
# Between two blocks there are `seq · micro_batch` rows of $h$ numbers: $s \cdot b \cdot h$ elements. Such
# tensors are called **activations**, and backward needs many of them again. PyTorch tells us which: every
# tensor that is kept for backward goes through a hook.
#
# **Predict:** how many times $s \cdot b \cdot h$ elements does a block keep? Count what each matrix is
# multiplied with, and what each curve (the norm, the GELU) is taken of.


# %%
def kept_elements(block, x, recompute=False):
    """Elements that a block keeps for backward, parameters aside."""
    own = {p.untyped_storage().data_ptr() for p in block.parameters()}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        checkpoint(block, x, use_reentrant=True) if recompute else block(x)
    # what the norms and the attention note for each row is small: leave it out
    return sum(s.nbytes() // x.itemsize for s in storages.values() if s.nbytes() >= x.nbytes)


for glu in (False, True):
    block = Block(128, glu).bfloat16()
    x = torch.randn(2, 64, 128, dtype=torch.bfloat16, requires_grad=True)
    everything, recomputed = kept_elements(block, x), kept_elements(block, x, recompute=True)
    print(
        f"GLU: {glu!s:5}  keeps {everything / x.numel():g} sbh; {recomputed / x.numel():g} sbh if it recomputes"
    )

# %% [markdown]
# So with bfloat16 it is 32 bytes for each of the $s b h$ numbers, and 48 with a gate. (A well-known
# paper counts 34: it has two dropouts, and their masks have a byte each; [Korthikanti and others
# 2022](https://arxiv.org/abs/2205.05198), who also count the scores of the attention, which are never
# stored where FlashAttention or its like is used, as here.)
#
# If that is too much, one keeps the *input* of each block only, and computes the rest again when backward
# gets there. That is the last number of each line: $1 \cdot sbh$, for a third more computation.

# %%
for layers, h, s, b in ((32, 4096, 4096, 1), (96, 12288, 2048, 1)):
    for name, times in (("everything kept", 16), ("inputs only", 1)):
        print(
            f"{layers} layers, h = {h}, {s} tokens, no gate, {name}:"
            f" {2 * layers * times * s * b * h / 1e9:.1f} GB"
        )

# %% [markdown]
# ## How long does it compute?
#
# A matrix product of a row of $k$ numbers with a $k \times m$ matrix takes $k \cdot m$ multiplications
# and as many additions: **2 operations for each parameter**. (Hardware is sold in such operations a
# second, FLOP/s; a multiplication and an addition count as two.)
#
# **Predict:** and backward? What has to be computed there from a matrix, its input, and the gradient of
# its output?


# %%
def counted_flops(glu, h, s, b):
    with torch.device("meta"):
        block, x = Block(h, glu), torch.empty(b, s, h, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        y = block(x)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    return count(block), forward.get_total_flops(), backward.get_total_flops()


h, s, b = 4096, 2048, 1
for glu in (False, True):
    params, forward, backward = counted_flops(glu, h, s, b)
    print(
        f"GLU: {glu!s:5}  for each token and parameter: forward {forward / (s * b * params):.3f},"
        f" backward {backward / (s * b * params):.3f}"
    )

# %% [markdown]
# Backward makes two products of the same size out of each one: the gradient of the *input*, which goes
# on to the block before, and the gradient of the *weight*. So 2 forward and 4 backward.
#
# And the rest, 0.167 forward? That is the attention itself: each token is compared with $s$ others, which
# no parameter takes part in. **Predict:** which part of the whole is it, if $s$ gets longer?

# %%
for s in (256, 2048, 16384):
    params, forward, _ = counted_flops(False, h, s, 1)
    attention = forward - 2 * s * params
    print(f"s = {s:6}: {attention / forward:6.1%} of forward; 4 s² h is", attention == 4 * s * s * h)

# %% [markdown]
# Attention adds $s/6h$ to the $24h^2$ of a block's matrices: little, as long as sequences are much
# shorter than $6h$. (Every pair of tokens is counted here. In a language model a token looks only at
# those before it, and a kernel that skips the other pairs does half of this.) The usual formula leaves it out ([Kaplan and others
# 2020](https://arxiv.org/abs/2001.08361)).
#
# ## Exercise: step_flops
#
# Operations of one step, forward and backward, as a whole number.


# %%
def step_flops(tokens: int, params: int) -> int:
    """Operations of a training step, forward and backward."""
    ### BEGIN SOLUTION
    forward = 2 * tokens * params
    backward = 2 * forward
    return forward + backward
    ### END SOLUTION


flops_known = check(step_flops)
flops_known

# %% [markdown]
# With it you can check what was published: GPT-3 has seen 300 billion tokens, and the
# [paper](https://arxiv.org/abs/2005.14165) (table D.1) says 3.14 · 10²³ operations.

# %%
if flops_known:
    whole = step_flops(300 * 10**9, exact["GPT-3"])
    print(f"{whole:.3g} operations; on 1000 devices of 10¹⁵ FLOP/s: {whole / 1e18 / 86400:.1f} days")

# %% [markdown]
# No program reaches the peak, so it takes longer. But it is a lower bound, from two numbers.
#
# ## What can be hidden?
#
# A device can compute and send at the same time. If there is something to compute *meanwhile*, and it
# takes longer than the sending, then the sending costs nothing. So the number that we want is
#
# $$\text{ratio} = \frac{\text{time of the communication}}{\text{time of the computation beside it}}$$
#
# Up to 1 it can be hidden. Above 1 the device waits.
#
# | | | here |
# |---|---|---|
# | $F$ | operations a second of one device | 989 · 10¹², an H100 in bfloat16 |
# | $B$ | bytes a second of its link, in *one* direction | 450 · 10⁹ inside the machine, 50 · 10⁹ outside |
# | $e$ | bytes of an element | 2, bfloat16 |
#
# (The links are those of the [simulated DGX H100](../docs/simulation.md), where their sources are; $F$
# is in [NVIDIA's data sheet](https://www.nvidia.com/en-us/data-center/h100/), there doubled for sparse
# matrices.)

# %%
PEAK, INSIDE, OUTSIDE = 989e12, 450e9, 50e9
print(f"operations in the time of one byte: inside {PEAK / INSIDE:,.0f}, outside {PEAK / OUTSIDE:,.0f}")

# %% [markdown]
# That is what each ratio below will contain: $F/B$. For every byte that you send, there have to be two
# thousand operations to do meanwhile, or twenty thousand.
#
# ### Elements are not bytes
#
# > **Tempting, and wrong.** "An all-reduce of $P$ gradients moves $2\frac{n-1}{n}P$ bytes."
#
# It is tempting, since all other numbers here are counts of elements. **Predict:** what does the record
# of a real ring say, of 8400 gradients on 4 ranks?


# %%
predict("")

# %%
def ring_sum(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.chunk(n)
    for step in range(2 * (n - 1)):
        gives, mine = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        came = torch.empty_like(mine)
        request = dist.isend(gives, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        mine.copy_(mine + came if step < n - 1 else came)


n, elements = 4, 8400
print("2(n−1)/n · P =", 2 * (n - 1) / n * elements)
for dtype in (torch.bfloat16, torch.float32, torch.float64):
    sent = run(ring_sum, n, torch.ones(elements, dtype=dtype)).trace.traffic.max_sent
    print(
        f"{str(dtype):15} a rank sent {sent:7,} bytes;"
        f" e · 2(n−1)/n · P = {dtype.itemsize * 2 * (n - 1) / n * elements:,.0f}"
    )

# %% [markdown]
# It is a count of *elements*. Bytes are $e$ times as many, and with a bandwidth in bytes a
# missing $e$ makes every ratio 2 or 4 times too good.
#
# ## Data parallelism
#
# Every replica has all the weights, and its own tokens. In the backward pass gradients appear, from the
# last layer to the first, and are averaged by an all-reduce. A layer's all-reduce can run while the
# layers before it are still computed backward.
#
# - **Sent:** by a ring, as in chapter 13 without the latencies, $e \cdot P \cdot 2\frac{DP-1}{DP}$
#   bytes, $P$ parameters.
# - **Computed meanwhile:** the backward pass, $4 \cdot \text{tokens} \cdot P$ operations. The *tokens*
#   are those of one replica.
#
# **Predict:** a model of ten times as many parameters sends ten times as many gradients. Is that harder
# to hide?


# %%
def dp_seconds(params, tokens, dp):
    sending = 2 * params * 2 * (dp - 1) / dp / OUTSIDE
    computing = 4 * tokens * params / PEAK
    return sending, computing


for params in (10**8, 10**9, 10**10, 10**11):
    sending, computing = dp_seconds(params, 8192, 8)
    print(
        f"{params:15,} parameters: sending {sending:8.4f} s, computing {computing:8.4f} s,"
        f" ratio {sending / computing:.4f}"
    )

# %% [markdown]
# The ratio is always the same: $P$ stands above and below, and cancels.
#
# > **Tempting, and wrong.** "The ratio of data parallelism is $\frac{P}{2 \cdot
# > \text{tokens}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}$." It is tempting: more gradients are more to
# > send. But it says that a model of 10¹¹ parameters has a ratio a thousand times as large as one of
# > 10⁸, and the table above says that both are alike. Derive it from the two times, and you cannot lose
# > the $P$ below.
#
# ## Exercise: dp_overlap_ratio
#
# Write both times down with a $P$ of your choice, divide, and cancel what you can.


# %%
def dp_overlap_ratio(
    tokens: int, dp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """All-reduce of the gradients, beside the backward pass."""
    ### BEGIN SOLUTION
    sending = bytes_per_element * 2 * (dp - 1) / dp / peak_bandwidth  # for each parameter
    computing = 4 * tokens / peak_flops
    return sending / computing
    ### END SOLUTION


dp_known = check(dp_overlap_ratio)
dp_known

# %%
if dp_known:
    for params in (10**8, 10**9, 10**10, 10**11):
        sending, computing = dp_seconds(params, 8192, 8)
        tempting = params / (2 * 8192) * 7 / 8 * PEAK / OUTSIDE
        print(
            f"{params:15,} parameters: two times divided {sending / computing:.4f}, your formula"
            f" {dp_overlap_ratio(8192, 8, PEAK, OUTSIDE, 2):.4f}, the tempting one {tempting:.3g}"
        )

# %% [markdown]
# What decides is the number of tokens. **Predict:** how many does a replica need, so that its gradients
# are hidden? Inside the machine, and outside?

# %%
if dp_known:
    for name, bandwidth in (("inside", INSIDE), ("outside", OUTSIDE)):
        enough = dp_overlap_ratio(1, 8, PEAK, bandwidth, 2)  # the ratio of a single token
        print(
            f"{name:8} from {enough:,.0f} tokens on; ratio there"
            f" {dp_overlap_ratio(round(enough), 8, PEAK, bandwidth, 2):.3f}"
        )

# %% [markdown]
# ![Overlap ratio of data parallelism and of ZeRO-3 against the tokens of a replica, both axes logarithmic: two falling lines, one for a link of 450 GB/s inside the machine and one for 50 GB/s outside. A line at 1 separates what can be hidden, below, from what is too long, above. The line inside crosses it near 1,900 tokens, the one outside near 17,300](../imgs/overlap_tokens.png)
#
# This is why large batches are good for data parallelism, and why a batch that is spread over ever more
# replicas gets worse: each has fewer tokens left.
#
# ## ZeRO, stage 3
#
# Now each replica keeps $1/DP$ of the weights. Before a block is computed, the rest of it is fetched by an
# all-gather, and let go of afterwards. While one block is computed, the next is on its way.
#
# | | sent | computed meanwhile |
# |---|---|---|
# | forward | all-gather of the weights | 2 · tokens · P |
# | backward | all-gather of the weights, reduce-scatter of the gradients | 4 · tokens · P |
#
# An all-gather of $P$ weights brings $e \cdot P \cdot \frac{DP-1}{DP}$ bytes to each rank, and a
# reduce-scatter the same. **Predict:** is the ratio of the backward pass better or worse than that of the
# forward pass?

# %%
predict("")

# %% [markdown]
# ## Exercise: zero3_overlap_ratio
#
# The tokens are those of a micro-batch, `seq · micro_batch`.


# %%
def zero3_overlap_ratio(
    seq: int,
    micro_batch: int,
    dp: int,
    peak_flops: float,
    peak_bandwidth: float,
    bytes_per_element: int,
) -> float:
    """All-gather of a block's weights, beside the block before."""
    ### BEGIN SOLUTION
    sending = bytes_per_element * (dp - 1) / dp / peak_bandwidth  # for each weight
    computing = 2 * seq * micro_batch / peak_flops
    return sending / computing
    ### END SOLUTION


zero3_known = check(zero3_overlap_ratio)
zero3_known

# %%
if zero3_known and dp_known:
    for s, b in ((2048, 1), (4096, 1), (4096, 8)):
        forward = zero3_overlap_ratio(s, b, 8, PEAK, OUTSIDE, 2)
        backward = 2 * (2 * 7 / 8 / OUTSIDE) / (4 * s * b / PEAK)  # twice the bytes, twice the work
        print(
            f"{s} · {b} tokens: forward {forward:.3f}, backward {backward:.3f};"
            f" DP with as many {dp_overlap_ratio(s * b, 8, PEAK, OUTSIDE, 2):.3f}"
        )

# %% [markdown]
# The same in both directions, and the same as for plain data parallelism! In all, ZeRO-3 sends *more*:
# three times $\frac{DP-1}{DP}P$ elements and not twice. But it also has the forward pass to hide it
# behind.
#
# **Predict** the bytes of both on 4 ranks, with 8400 parameters in bfloat16. Here they are sent:
# simulated ranks make messages of the built-in collectives too, and record them.


# %%
predict("")

# %%
def dp_step(weights):
    dist.all_reduce(torch.ones_like(weights))  # gradients


def zero3_step(weights):
    mine = weights.chunk(dist.get_world_size())[dist.get_rank()].clone()
    for _ in ("forward", "backward"):
        dist.all_gather_into_tensor(torch.empty_like(weights), mine)
    dist.reduce_scatter_tensor(torch.empty_like(mine), torch.ones_like(weights))  # gradients


n, e = 4, torch.bfloat16.itemsize
weights = torch.ones(8400, dtype=torch.bfloat16)
rings = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring"}
for step, times in ((dp_step, 2), (zero3_step, 3)):
    sent = simulate(step, n, weights, algorithms=rings).trace.traffic.max_sent
    formula = times * e * (n - 1) / n * weights.numel()
    print(f"{step.__name__:10} a rank sent {sent:,} bytes; {times} · e · (DP−1)/DP · P = {formula:,.0f}")

# %% [markdown]
# There is a difference, though. When a replica adds up gradients over several micro-batches before it
# steps, data parallelism sends once, at the end. ZeRO-3 fetches the weights for each micro-batch again.
#
# ## Tensor parallelism
#
# Now one matrix is cut into TP parts, and each device computes with its part, on *all* tokens (chapter
# 17 does it for real). Before each matrix the activations are gathered, or after it they are reduced
# and scattered: $\frac{TP-1}{TP}$ of $\text{tokens} \cdot h$ elements.
#
# - **Sent:** $e \cdot \text{tokens} \cdot h \cdot \frac{TP-1}{TP}$ bytes.
# - **Computed:** one $h \times h$ matrix, of which this device has one part of TP:
#   $2 \cdot \text{tokens} \cdot h^2 / TP$ operations.
#
# There is a difference from the two before. The product *needs* the activations that are being gathered,
# so as written nothing can be computed meanwhile, and the layer takes 1 + ratio times as long as its
# product. To overlap them, the product itself has to be cut: multiply the tokens that have come while the
# next ones travel ([Wang and others 2023](https://doi.org/10.1145/3567955.3567959)). Then the ratio says,
# as before, whether the transfer can be hidden.
#
# **Predict:** what cancels? Does a larger batch help?
#
# ## Exercise: tp_overlap_ratio


# %%
def tp_overlap_ratio(
    hidden: int, tp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """All-gather or reduce-scatter of activations, beside one matrix."""
    ### BEGIN SOLUTION
    sending = bytes_per_element * hidden * (tp - 1) / tp / peak_bandwidth  # for each token
    computing = 2 * hidden * hidden / tp / peak_flops
    return sending / computing
    ### END SOLUTION


tp_known = check(tp_overlap_ratio)
tp_known

# %%
if tp_known:
    for name, bandwidth in (("inside", INSIDE), ("outside", OUTSIDE)):
        for hidden in (4096, 12288):
            ratios = [f"{tp_overlap_ratio(hidden, tp, PEAK, bandwidth, 2):.2f}" for tp in (2, 4, 8, 16)]
            print(f"{name:8} h = {hidden:5}, TP = 2, 4, 8, 16:", *ratios)

# %% [markdown]
# Tokens cancel: neither a longer sequence nor a larger batch helps. Only a wider model does, fewer
# devices, or a faster link. This is why tensor parallelism stays *inside* the machine.
#
# The formula is for a square matrix, the smallest one of a block. **Predict:** a block without a gate
# has $12h^2$ parameters, and four such communications forward. What is the ratio of the whole block?

# %%
if tp_known:
    h, tp, tokens = 4096, 8, 2048
    sending = 4 * 2 * tokens * h * (tp - 1) / tp / INSIDE
    for glu, params in ((False, 12 * h * h), (True, 16 * h * h)):
        computing = 2 * tokens * params / tp / PEAK
        print(
            f"GLU: {glu!s:5}  whole block {sending / computing:.3f},"
            f" one square matrix {tp_overlap_ratio(h, tp, PEAK, INSIDE, 2):.3f}"
        )

# %% [markdown]
# Three or four times better: the wide matrices of the MLP compute four times as long for the same
# activations. Which number counts depends on what can really run side by side, and that is a matter of the
# program.
#
# ## Pipeline parallelism
#
# Now whole blocks are dealt out: each *stage* has some, and passes its activations on to the next one,
# and gradients back. It is a plain message, of $\text{tokens} \cdot h$ elements. Meanwhile the next
# stage computes the micro-batch before: its blocks, $2 \cdot \text{tokens} \cdot 16h^2$ operations
# each, with a gate.
#
# **Predict:** 4 stages, 6 micro-batches of 2 sequences of 64 tokens, h = 128, bfloat16. How many bytes go
# over each boundary in a step, in each direction?


# %%
def pipeline_step(activations, micro_batches):
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    came = torch.empty_like(activations)
    for _ in range(micro_batches):  # forward: activations
        if stage > 0:
            dist.recv(came, stage - 1)
        if stage < last:
            dist.send(activations, stage + 1)
    for _ in range(micro_batches):  # backward: gradients, of the same shape
        if stage < last:
            dist.recv(came, stage + 1)
        if stage > 0:
            dist.send(activations, stage - 1)


s, b, h, stages, micro_batches = 64, 2, 128, 4, 6
activations = torch.ones(b, s, h, dtype=torch.bfloat16)
messages = simulate(pipeline_step, stages, activations, micro_batches).trace.messages
for here, there in ((0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)):
    sent = sum(m.nbytes for m in messages if (m.source, m.destination) == (here, there))
    what = "activations" if here < there else "gradients"
    print(f"stage {here} to {there}: {sent:,} bytes of {what}")
print(f"micro-batches · e · s · b · h = {micro_batches * activations.itemsize * s * b * h:,}")

# %% [markdown]
# ## Exercise: pp_overlap_ratio
#
# With blocks of $16h^2$: attention, and a gated MLP of width $4h$.


# %%
def pp_overlap_ratio(
    hidden: int,
    layers_in_next_stage: int,
    peak_flops: float,
    peak_bandwidth: float,
    bytes_per_element: int,
) -> float:
    """Activations for the next stage, beside its blocks."""
    ### BEGIN SOLUTION
    sending = bytes_per_element * hidden / peak_bandwidth  # for each token
    computing = 2 * layers_in_next_stage * transformer_block_params(hidden, True) / peak_flops
    return sending / computing
    ### END SOLUTION


pp_known = check(pp_overlap_ratio)
pp_known

# %%
if pp_known:
    for hidden in (4096, 12288):
        ratios = [f"{pp_overlap_ratio(hidden, layers, PEAK, OUTSIDE, 2):.4f}" for layers in (1, 4, 16)]
        print(f"outside, h = {hidden:5}, 1, 4, 16 layers in a stage:", *ratios)

# %% [markdown]
# Far below 1, even outside the machine: a stage sends little. What pipelines pay with is something
# else, the *bubble*: at the beginning and at the end of a step, stages stand still since nothing has
# come yet. A ratio of times cannot show that, but counting can. With $m$ micro-batches in a step, a
# stage works for $m$ turns and stands still for $PP - 1$, so the bubble is
# $\frac{PP - 1}{m + PP - 1}$ of the step. (As a share of the *work* it is $\frac{PP - 1}{m}$, as in
# [Narayanan and others 2021](https://arxiv.org/abs/2104.04473), section 2.2.)
#
# ## What the ratios do not know
#
# All four assume the same things. Each of them hides a cost:
#
# - **Both reach their peak.** Real matrix products reach a part of $F$ (then more is hidden than we
#   think), and real links a part of $B$.
# - **There is one link, and it is ours.** Data, tensor and pipeline parallelism at the same time
#   share it.
# - **Side by side costs nothing.** On a GPU a collective takes some of the processors that compute, too.
# - **There is always something to compute meanwhile.** The *last* gradients, of the first layer, have
#   no backward pass left to hide behind; nor has the first all-gather of ZeRO-3 anything before it.
# - **A message has no latency.** Chapter 13 knows better. **Predict:** gradients of 10⁹ parameters go
#   around a ring, in buckets of $25 \cdot 2^{20}$ bytes, DDP's default. What do latencies of 14 µs (those of the [simulated
#   DGX H100](../docs/simulation.md)) do, on 8 and on 1024 ranks?


# %%
def seconds_of_a_ring(n, nbytes, alpha, beta):  # chapter 13
    steps = 2 * (n - 1)
    return steps * alpha + steps / n * nbytes * beta


params, bucket, alpha = 10**9, 25 * 2**20, 14e-6
tokens = 32768
for n in (8, 64, 1024):
    computing = 4 * tokens * params / PEAK
    buckets = 2 * params / bucket
    without = buckets * seconds_of_a_ring(n, bucket, 0, 1 / OUTSIDE) / computing
    honest = buckets * seconds_of_a_ring(n, bucket, alpha, 1 / OUTSIDE) / computing
    formula = f"{dp_overlap_ratio(tokens, n, PEAK, OUTSIDE, 2):.3f}" if dp_known else "?"
    print(f"{n:5} ranks: your formula {formula}, ring without latency {without:.3f}, with {honest:.3f}")

# %% [markdown]
# On 8 ranks the formula is fine. On 1024 it is wrong by a factor that decides everything: a plain ring
# has 2046 latencies for every bucket. (Libraries take trees or hierarchies there, and larger buckets
# help.)
#
# A ratio above 1 is a sure sign: it *cannot* be hidden. One below 1 is a hope.
#
# ## All together
#
# Below is a calculator with all formulas of this chapter. Choose numbers by mouse or keyboard, and see
# what a device has to keep, and what can be hidden. (In the table of a saved notebook nothing can be
# turned: run the cell.)
#
# It stands at LLaMA's first size, with blocks of $16h^2$, on 8 replicas without ZeRO.
#
# 1. It does not fit into 80 GB. Find three different ways to make it fit.
# 2. Which of your ways keeps all communication hidden?
# 3. How large can you make the model on 64 devices?

# %%
calculator(hidden=4096, layers=32, vocab=32_000, seq=4096, dp=8, zero=0)

# %% [markdown]
# It counts what this chapter counts, on a device of the *first* stage: with a pipeline, that one has
# the most micro-batches on their way, as many as there are stages. With tensor parallelism, activations
# are shared out as well. What it leaves out: the scores of the head (a long row for every token),
# buffers, and gaps in memory.
#
# ## Summary
#
# - A block has $12h^2$ parameters, with a gate of full width $16h^2$; a model has blocks, an embedding,
#   perhaps a head and positions. Biases and norms are small, the *width of the MLP* is not.
# - Mixed precision with Adam keeps 16 bytes a parameter; ZeRO shares 12, 14 or all 16 of them out.
# - A block keeps 16 times $sbh$ elements for backward, 24 times with a gate; 1 time if it computes the
#   rest again.
# - A step takes 6 operations for each token and parameter: 2 forward, 4 backward.
# - Communication over computation, hidden up to 1:
#
# | | ratio | what helps |
# |---|---|---|
# | DP | $\frac{e}{2 \cdot \text{tokens}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}$ | more tokens on a replica |
# | ZeRO-3 | $\frac{e}{2 \cdot \text{seq} \cdot \text{mbs}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}$ | more tokens in a micro-batch |
# | TP | $\frac{e \cdot (TP-1)}{2h} \cdot \frac{F}{B}$ | a wider model, fewer devices |
# | PP | $\frac{e}{32 \cdot h \cdot \text{layers}} \cdot \frac{F}{B}$ | a wider model, more layers in a stage |
#
# - Say the unit: elements, numbers of two bytes, bytes. And derive a ratio from two times.
#
# **Where this is used:** a training run is planned on such a page: what fits, on how many devices, and
# which parallelism goes over which link. And a profile means little until you compare it with one.
#
# ### Check yourself
#
# <details><summary>A model of 13 billion parameters is trained on 64 devices with ZeRO-1. How much of what stays does each keep?</summary>
#
# 2 + 2 + 12/64 = 4.19 bytes a parameter, 54 GB. Weights and gradients are not shared out: more devices
# do not help any more. ZeRO-3 would keep 16/64 = 0.25 bytes, 3.3 GB.
# </details>
#
# <details><summary>You double the number of replicas and keep the whole batch as it is. What happens to the ratio of data parallelism?</summary>
#
# It doubles (nearly: (DP − 1)/DP also grows a little): each replica has half of the tokens, and still
# sends all gradients.
# </details>
#
# <details><summary>Tensor parallelism over 8 devices is not hidden. A colleague suggests a larger micro-batch. Does it help?</summary>
#
# No. Both what is sent and what is computed grow with the tokens, and they cancel.
# </details>
#
# <details><summary>You train with gradients in float32. What changes?</summary>
#
# e = 4, so the ratio of data parallelism doubles; and a parameter takes 18 bytes and not 16.
# </details>
#
# **Next:** chapter [17](17_sharded_matmul.ipynb) cuts matrices and sequences for real.
