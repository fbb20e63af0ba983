# %% [markdown]
# # 16 · Scale math
#
# You have 64 GPUs of 80 GB each, and want to train a model of 65 billion parameters on 1.4 trillion
# tokens. Does it fit? How many days will it take? And which of its messages take too long on the network
# between the machines? A page of arithmetic answers all three before anything runs.
#
# **You will learn** to work out on paper how large a model is, how much memory its training takes, how
# long it computes, and which communication can be hidden behind that computation: for data parallelism,
# ZeRO, tensor and pipeline parallelism. You derive each formula yourself, and then check it against
# real modules.
#
# **You need** chapters [07](07_all_reduce.ipynb) (an all-reduce is a reduce-scatter and an all-gather),
# [13](13_cost_models.ipynb) and [14](14_bandwidth.ipynb).
#
# **Time:** 2 hours, with 8 exercises. Each is a plain function of one to three lines that sends
# nothing; the thinking is done on paper.

# %%
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from grader.api.calculator import calculator

# %% [markdown]
# ## How large is a block?
#
# A language model is a stack of identical **blocks**. Here is one. Between blocks, every token is a row
# of $h$ numbers; $h$ is called the *hidden size*.
#
# The argument `glu` says whether the MLP is *gated* ([Shazeer 2020](https://arxiv.org/abs/2002.05202)).
# If it is, its first matrix is twice as wide, and one half of the output is multiplied by the other
# half.


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

    def forward(self, x, causal=True):  # (sequences, tokens, h)
        split = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        ]
        heard = F.scaled_dot_product_attention(*split, is_causal=causal)
        x = x + self.out(heard.transpose(1, 2).flatten(2))
        y = self.up(self.norm2(x))
        if self.glu:
            gate, y = y.chunk(2, -1)
            y = F.silu(gate) * y
        else:
            y = F.gelu(y)
        return x + self.down(y)


# %% [markdown]
# ## Exercise: transformer_block_params
#
# How many parameters does this block have, with a gate and without? Go through its four matrices.
#
# Return a whole number, exactly: in this chapter everything that is *counted* is an `int`. (A float
# holds 16 digits, and a training run has more operations than that.)


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
# Now let PyTorch count. On its *meta* device tensors have a shape and no memory, so a model may be as
# large as you like. The last lines take PyTorch's own block, which has biases, and norms with
# parameters.


# %%
def count(model):
    return sum(p.numel() for p in model.parameters())


h = 4096
for glu in (False, True):
    with torch.device("meta"):
        block = Block(h, glu)
    parts = {name: p.numel() / h**2 for name, p in block.named_parameters()}
    print(f"GLU: {glu!s:5}", parts, "in all", sum(parts.values()), "h²")

if block_known:
    for h, heads in ((64, 4), (768, 12), (12288, 96)):
        counted = count(nn.TransformerEncoderLayer(h, heads, 4 * h, device="meta"))
        more = counted - transformer_block_params(h, glu=False)
        print(f"PyTorch's, h = {h:5}: {more / h:.0f} h more than yours, {more / counted:.2%} of it")

# %% [markdown]
# Biases and norms add $13h$. Next to $12h^2$ that is little, and its share shrinks as the model gets wider.
# That is why they are usually left out.
#
# ## From a block to a model
#
# Besides its blocks, a model has tables whose rows have $h$ numbers each:
#
# - the **embedding**, with one row for each entry of the vocabulary;
# - the **head**, which turns a token's row into a score for each entry. It is as large as the
#   embedding. If it is **tied**, it *uses* the embedding's matrix and has none of its own;
# - **learned positions**, in some models: one row for each position.
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
# **Predict:** for which of them is the formula good?
#
# <details><summary>For all of them: it counts every matrix</summary>
#
# No: for LLaMA it counts almost a third too many. It has to know how large the matrices are.
# </details>
#
# <details><summary>For the large ones: what is left out grows more slowly</summary>
#
# No: what it leaves out is small everywhere. For LLaMA, large or small, the width of a matrix is wrong.
# </details>
#
# <details><summary>For the GPTs, and not for LLaMA</summary>
#
# Yes: within half a per cent for the GPTs, and a third off for LLaMA.
# </details>

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
# The GPTs agree to within half a per cent. For LLaMA the formula counts almost a third too many.
#
# > **A mistake that was published.** GPT-2's
# > [paper](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)
# > says 117 million for the small model and 345 million for the medium one. Its authors [corrected
# > that](https://github.com/openai/gpt-2#readme) later: "our original parameter counts were wrong due
# > to an error". Your function gives the corrected numbers.
#
# ### What the formula does not know
#
# *LLaMA's MLP is narrower.* A gated MLP of width $4h$ has $12h^2$ parameters instead of $8h^2$. To get
# back to $8h^2$, LLaMA makes it $\frac{2}{3} \cdot 4h$ wide, rounded up to a multiple of 256 ([the
# code](https://github.com/meta-llama/llama/blob/main/llama/model.py)). So its gated blocks have a little
# over $12h^2$ parameters, where our formula has $16h^2$.
#
# *Heads can be grouped.* In Llama 3 8B ([paper, table 3](https://arxiv.org/abs/2407.21783)) four heads
# of queries share one head of keys and values, so these two matrices have a quarter of the size. Its
# MLP is 14,336 wide.
#
# *Norms and biases* are left out.
#
# Which of the three makes the largest difference? Here are models that have all of it, made of real modules.


# %%
def llama(hidden, layers, vocab, width, keys_and_values):
    """Everything in a model of the LLaMA family that has parameters, on the meta device."""

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
    """The same for a GPT; its head is the embedding."""
    with torch.device("meta"):
        blocks = [nn.TransformerEncoderLayer(hidden, heads, 4 * hidden) for _ in range(layers)]
        return nn.ModuleList(
            [nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden), *blocks, nn.LayerNorm(hidden)]
        )


def narrow(h):  # two thirds of 4h, rounded up
    return -(-(2 * 4 * h // 3) // 256) * 256


exact = {
    "GPT-2 small": count(gpt(768, 12, 50257, 1024, 12)),
    "GPT-3": count(gpt(12288, 96, 50257, 2048, 96)),
    "LLaMA 7B": count(llama(4096, 32, 32000, narrow(4096), 4096)),
    "LLaMA 65B": count(llama(8192, 80, 32000, narrow(8192), 8192)),
    "Llama 3 8B": count(llama(4096, 32, 128256, 14336, 1024)),
}
for name, number in exact.items():
    print(f"{name:12} {number:15,}")

if model_known:
    whole = exact["Llama 3 8B"]
    for name, parameters in (
        ("our formula has more", model_params(4096, 32, 128256, True, False) - whole),
        ("  for a wider MLP", 32 * 3 * 4096 * (4 * 4096 - 14336)),
        ("  for heads that are not grouped", 32 * 2 * 4096 * (4096 - 1024)),
        ("  and it has no norms", -65 * 4096),
    ):
        print(f"Llama 3 8B: {name:33} {parameters:+15,} = {parameters / whole:+.3%}")

# %% [markdown]
# Here the MLP and the grouped heads matter equally, and the norms not at all. (LLaMA has no grouped
# heads: there the MLP makes all the difference.) A formula is only as good as what you know about the
# model. Ask for the shapes of its matrices first.
#
# ## Memory that stays
#
# Training in *mixed precision* with Adam keeps five numbers for each parameter:
#
# | | dtype |
# |---|---|
# | weight, to compute with | bfloat16 |
# | gradient | bfloat16 |
# | weight, the exact copy | float32 |
# | momentum | float32 |
# | variance | float32 |
#
# ([Micikevicius and others 2018](https://arxiv.org/abs/1710.03740) explain the exact copy: in 16 bits a
# small step would be rounded away. [Rajbhandari and others 2020](https://arxiv.org/abs/1910.02054)
# count the bytes.)
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
# Here is what one step of training a 4096 × 4096 matrix keeps, and then what your formula says of the
# models above.
#
# **Predict:** which of them could you train on a GPU of 80 GB, if nothing else took memory?
#
# <details><summary>GPT-2 small alone</summary>
#
# Yes: a billion parameters take 16 GB, so five billion are the limit.
# </details>
#
# <details><summary>GPT-2 small, LLaMA 7B and Llama 3 8B</summary>
#
# No: the weights of the larger two take 13 and 16 GB in bfloat16, but training keeps eight times as much.
# </details>
#
# <details><summary>All but GPT-3</summary>
#
# No: not even the weights of LLaMA 65B would fit, which are 131 GB in bfloat16.
# </details>

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
print("in all", sum(tensor.nbytes for tensor in kept.values()) / h**2, "h² bytes\n")

if state_known:
    for name, number in exact.items():
        gigabytes = training_state_bytes(number) / 1e9
        print(f"{name:12} {gigabytes:8,.1f} GB, {'fits' if gigabytes <= 80 else 'does not fit'}")

# %% [markdown]
# > **Say the unit.** Adam's state of an $h \times h$ matrix is $3h^2$ *numbers*, or $12h^2$ *bytes*, as the
# > first list says. You may also see $6h^2$: a float32 is as long as two bfloat16, so in units of two bytes
# > it is 6. A sum like $h^2 + h^2 + 6h^2$ is right in those units, and wrong by a factor of 2 as bytes and
# > of $\frac{8}{5}$ as numbers.
#
# Data parallelism does not help here, because each replica keeps everything. **ZeRO** does: the replicas
# *split* among them what stays. Each keeps $1/DP$ of it, and fetches the rest when it needs it. Stage 1
# splits the optimizer's state, stage 2 also the gradients, and stage 3 also the weights.
#
# ![Bytes of one parameter on each of 8 replicas, as stacked bars. Without ZeRO: weights 2, gradients 2, optimizer 12, together 16. ZeRO-1: 2, 2 and 1.5, together 5.5. ZeRO-2: 2, 0.25 and 1.5, together 3.75. ZeRO-3: 0.25, 0.25 and 1.5, together 2](../imgs/zero_stages.png)
#
# ## Memory that comes and goes
#
# Between two blocks there are $s \cdot b$ rows of $h$ numbers, for a micro-batch of $b$ sequences of
# $s$ tokens: $sbh$ elements. Such tensors are called **activations**, and backward needs many of them
# again. PyTorch tells us which: each tensor that is kept for backward passes through a hook.
#
# **Predict:** how many times $sbh$ elements does a block without a gate keep? Count the input of each matrix
# product and of everything nonlinear: the norms, the attention, the GELU.
#
# <details><summary>1: the input of the block</summary>
#
# No: the rest would have to be computed again. That can be done, and is called recomputation.
# </details>
#
# <details><summary>7: the inputs of the four matrices</summary>
#
# No: these are 1 + 1 + 1 + 4, but the norms, the attention and the GELU need their inputs as well.
# </details>
#
# <details><summary>16: also the inputs of all that is not linear</summary>
#
# Yes: 7 for the matrices, 2 for the norms, 3 for the attention and 4 for the GELU.
# </details>


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
    everything, inputs = kept_elements(block, x), kept_elements(block, x, recompute=True)
    everything, inputs = everything / x.numel(), inputs / x.numel()
    print(f"GLU: {glu!s:5}  keeps {everything:g} sbh; {inputs:g} sbh if it recomputes")

s, h, layers = 2048, 8192, 80
for name, times in (("everything kept", 16), ("inputs only", 1)):
    gigabytes = 2 * layers * times * s * h / 1e9
    print(f"{layers} layers, h = {h}, {s} tokens, no gate, {name}: {gigabytes:.1f} GB")

# %% [markdown]
# A gate keeps 8 more: the first matrix's output is twice as wide (4 more), and the product of the two
# halves needs both of its factors, so the activated gate as well (4 more).
#
# In bfloat16 that is 32 bytes for each of the $sbh$ numbers, and 48 with a gate. (The authors of
# Megatron-LM, NVIDIA's library for training transformers, count 34: their block has two dropouts, whose
# masks take a byte each ([Korthikanti and others 2022](https://arxiv.org/abs/2205.05198)). They also
# count the scores of the attention. Kernels such as FlashAttention never store those, and neither does
# the one used here.)
#
# If that is too much, keep only the *input* of each block, and compute the rest again when backward
# gets there. This **recomputation** leaves $1 \cdot sbh$ a block, and costs one more forward pass.
#
# ## How long does it compute?
#
# A row of $k$ numbers times a $k \times m$ matrix takes $k \cdot m$ multiplications and as many
# additions: **2 operations for each parameter**. (Hardware is sold in such operations a second, FLOP/s;
# a multiplication and an addition count as two.)
#
# And backward? It starts from a matrix, its input, and the gradient of its output. What has to be
# computed from them, and how much work is that, compared with forward?
#
# ## Exercise: step_flops
#
# The operations of one step, forward and backward, as a whole number. Nothing is recomputed.


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
# Let PyTorch count again. It will find a little more than you did.
#
# **Predict:** what is the rest, and what happens to its share in longer sequences?
#
# <details><summary>The attention, and its share grows</summary>
#
# Yes: each token is compared with all others, so twice as long a sequence takes four times the work.
# </details>
#
# <details><summary>The attention, and its share stays</summary>
#
# No: each token is compared with all others. There are more of those in a longer sequence.
# </details>
#
# <details><summary>The norms and the GELU, and their share stays</summary>
#
# No: PyTorch counts matrix products only. The attention has two without any parameters.
# </details>


# %%
def counted_flops(glu, h, s, causal=True):
    with torch.device("meta"):
        block, x = Block(h, glu), torch.empty(1, s, h, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        y = block(x, causal)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    return count(block), forward.get_total_flops(), backward.get_total_flops()


h, s = 4096, 2048
for glu in (False, True):
    params, forward, backward = counted_flops(glu, h, s)
    print(
        f"GLU: {glu!s:5}  for each token and parameter: forward {forward / (s * params):.3f},"
        f" backward {backward / (s * params):.3f}"
    )

for s in (256, 2048, 16384):
    params, forward, _ = counted_flops(False, h, s)
    attention = forward - 2 * s * params
    exactly = attention == 4 * s * s * h
    print(f"s = {s:6}: the rest is {attention / forward:6.1%} of forward; 4 s² h: {exactly}")
_, without_mask, _ = counted_flops(False, h, s, causal=False)
print("as many operations without the causal mask:", without_mask == forward)

# %% [markdown]
# Backward makes two products out of each one: the gradient of the *input*, which goes on to the block
# before, and the gradient of the *weight*. So it is 2 forward and 4 backward.
#
# The rest is the attention itself, in which each token is compared with $s$ others, and no parameter
# takes part. It adds $4s^2h$ to the $24sh^2$ of a block's matrices, the fraction $\frac{s}{6h}$:
# little, while sequences are much shorter than $6h$. Your formula leaves it out, as [Kaplan and others
# 2020](https://arxiv.org/abs/2001.08361) do.
#
# **Is causal attention half of that?** A token attends only to itself and to those before it, about
# half of all pairs. PyTorch's counter ignores the mask, as its last line shows, and so does the formula
# of [Narayanan and others 2021](https://arxiv.org/abs/2104.04473), whose attention term
# is the same $\frac{s}{6h}$. FlashAttention skips the masked half, and its
# [benchmark](https://github.com/Dao-AILab/flash-attention/blob/main/benchmarks/benchmark_flash_attention.py)
# counts half; so does
# [Megatron-LM](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py) today.
# Both conventions are in use. This chapter counts all pairs. When you compare two numbers, make sure that both
# count alike: at $s = 6h$, one is a third larger than the other.
#
# With `step_flops` you can check what was published. GPT-3 saw 300 billion tokens, and the
# [paper](https://arxiv.org/abs/2005.14165) (table D.1) says 3.14 · 10²³ operations. LLaMA 65B saw 1.4
# trillion, in about 21 days on 2048 A100s ([paper](https://arxiv.org/abs/2302.13971)),
# each of which does at most [312 · 10¹²](https://www.nvidia.com/en-us/data-center/a100/) operations a
# second in bfloat16.

# %%
if flops_known:
    print(f"GPT-3: {step_flops(300 * 10**9, exact['GPT-3']):.3g} operations")
    training = step_flops(1400 * 10**9, exact["LLaMA 65B"])
    days = training / (2048 * 312e12) / 86400
    print(f"LLaMA 65B: {training:.3g} operations, {days:.1f} days at the peak")
    print(f"in 21 days it ran at {days / 21:.0%} of the peak")

# %% [markdown]
# No program reaches the peak, so this is a lower bound on the days. The fraction of the peak that a run
# did reach tells you what to expect of the next one. It is called **MFU**, *model FLOPs utilization*
# ([Chowdhery and others 2022](https://arxiv.org/abs/2204.02311)). It counts only the operations that the
# model needs; if you count those of recomputation as well, it is the *hardware* FLOPs utilization, HFU.
#
# ## What can be hidden?
#
# A device can compute and send at the same time. If there is something to compute *meanwhile*, and it
# takes longer than the sending, the sending costs nothing. So the number to look at is
#
# $$\text{ratio} = \frac{\text{time of the communication}}{\text{time of the computation beside it}}$$
#
# Up to 1, the communication can be hidden. Above 1, the device has to wait.
#
# | | | here |
# |---|---|---|
# | $F$ | operations a second of one device | 989 · 10¹², an H100 SXM in bfloat16 |
# | $B$ | bytes a second of its link, in *one* direction | 450 · 10⁹ inside the machine, 50 · 10⁹ outside |
# | $e$ | bytes of an element | 2, bfloat16 |
#
# (The links are those of the [simulated DGX H100](../docs/simulation.md), where their sources are. $F$
# is in [NVIDIA's data sheet](https://www.nvidia.com/en-us/data-center/h100/), doubled there for sparse
# matrices. With 8-bit floats it is twice as large, and so is each ratio below, unless what is sent shrinks
# to 8 bits as well.)

# %%
PEAK, INSIDE, OUTSIDE = 989e12, 450e9, 50e9
print(f"operations in the time of one byte: inside {PEAK / INSIDE:,.0f}, outside {PEAK / OUTSIDE:,.0f}")

# %% [markdown]
# So for every byte that is sent there must be two thousand operations to do meanwhile, or twenty
# thousand between machines. And that is the whole idea: each ratio below is this one function.

# %%
def overlap_ratio(elements, operations, peak_flops, peak_bandwidth, bytes_per_element):
    """Time to send so many elements, over the time of the operations that are done meanwhile."""
    return elements * bytes_per_element / peak_bandwidth / (operations / peak_flops)


# %% [markdown]
# All that differs is what you put in. Four times you have to find two counts: how many **elements** does a rank
# send, and how many **operations** does it do meanwhile? Count both for one parameter, for one token or for
# whatever else cancels.
#
# ## Data parallelism
#
# Every replica has all the weights, and tokens of its own. In backward, gradients appear from the last
# layer to the first, and each is averaged by an all-reduce, which can run while the layers before it
# are still being computed. The all-reduce is a ring, as in chapter 13, without its latencies.
#
# ## Exercise: dp_overlap_ratio
#
# Compare the all-reduce of all gradients with the whole backward pass. The model's size is not among the
# arguments. Invent one, write down both counts, and see what becomes of it.


# %%
def dp_overlap_ratio(
    tokens: int, dp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """All-reduce of the gradients, beside the backward pass."""
    ### BEGIN SOLUTION
    elements, operations = 2 * (dp - 1) / dp, 4 * tokens  # for each parameter
    return overlap_ratio(elements, operations, peak_flops, peak_bandwidth, bytes_per_element)
    ### END SOLUTION


dp_known = check(dp_overlap_ratio)
dp_known

# %% [markdown]
# Here are both times for models of four sizes, on 8 replicas with 8192 tokens each, on the links
# between machines; then the tokens that a replica needs to hide its gradients.


# %%
def dp_seconds(params, tokens, dp):
    sending = 2 * params * 2 * (dp - 1) / dp / OUTSIDE
    computing = 4 * tokens * params / PEAK
    return sending, computing


if dp_known:
    yours = dp_overlap_ratio(8192, 8, PEAK, OUTSIDE, 2)
    for params in (10**8, 10**9, 10**10, 10**11):
        sending, computing = dp_seconds(params, 8192, 8)
        print(
            f"{params:15,} parameters: sending {sending:8.4f} s, computing {computing:8.4f} s,"
            f" ratio {sending / computing:.4f}, yours {yours:.4f}"
        )
    for name, bandwidth in (("inside", INSIDE), ("outside", OUTSIDE)):
        enough = dp_overlap_ratio(1, 8, PEAK, bandwidth, 2)  # the ratio of a single token
        print(f"{name:8} hidden with {enough:,.0f} tokens or more")

# %% [markdown]
# The number of parameters appears in numerator and denominator, and cancels:
#
# $$\frac{e \cdot P \cdot 2\frac{DP-1}{DP} \,/\, B}{4 \cdot \text{tokens} \cdot P \,/\, F}
#   = \frac{e}{2 \cdot \text{tokens}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}.$$
#
# With $P$ in place of $e$, as you may also see it, a model of 10¹¹ parameters would be a thousand times as
# hard to hide as one of 10⁸. The list above says that they are equal.
#
# ![Overlap ratio of data parallelism and of ZeRO-3 against the tokens of a replica, both axes logarithmic: two falling lines, one for a link of 450 GB/s inside the machine and one for 50 GB/s outside. A line at 1 separates what can be hidden, below, from what is too long, above. The line inside crosses it near 1,900 tokens, the one outside near 17,300](../imgs/overlap_tokens.png)
#
# What decides is the number of tokens. That is why data parallelism likes large batches, and why a
# batch that is spread over ever more replicas gets worse: each has fewer tokens left.
#
# With recomputation the backward pass takes longer, 2 + 4 operations instead of 4, and the ratio falls
# to two thirds. The calculator below takes that into account: with 4096 tokens on each of 8 replicas,
# outside, 4.225 becomes 2.817. This is no bargain: you have added the work behind which the transfer hides.
#
# ## ZeRO, stage 3
#
# Now each replica keeps only $1/DP$ of the weights. The rest of a block is fetched by an all-gather
# before the block is computed, and dropped afterwards; while one block is computed, the next one is on
# its way. Backward fetches the weights again, and ends with a reduce-scatter of the gradients.
#
# ## Exercise: zero3_overlap_ratio
#
# Take the *forward* pass, and compare the all-gather of one block with the computation of a block of the
# same size. Its tokens are those of a micro-batch, `seq · micro_batch`.


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
    elements, operations = (dp - 1) / dp, 2 * seq * micro_batch  # for each weight
    return overlap_ratio(elements, operations, peak_flops, peak_bandwidth, bytes_per_element)
    ### END SOLUTION


zero3_known = check(zero3_overlap_ratio)
zero3_known

# %% [markdown]
# **Predict:** how much does a rank send in a whole step, compared with plain data parallelism?
#
# <details><summary>As much: an all-reduce also has two halves</summary>
#
# No: backward has to fetch the weights once more, so there are three.
# </details>
#
# <details><summary>Half as much again</summary>
#
# Yes: two all-gathers and a reduce-scatter, where an all-reduce has one of each.
# </details>
#
# <details><summary>Twice as much: in both passes</summary>
#
# No: forward is one all-gather, and backward is an all-gather and a reduce-scatter.
# </details>
#
# The cell below sends them, with 4 ranks and 8400 parameters. (Simulated ranks make the messages of
# built-in collectives too, and record them.) Then it prints the ratio of the *backward* pass beside that
# of the forward pass.

# %%
def dp_step(weights):
    dist.all_reduce(torch.ones_like(weights))  # gradients


def zero3_step(weights):
    mine = weights.chunk(dist.get_world_size())[dist.get_rank()].clone()
    for _ in ("forward", "backward"):
        dist.all_gather_into_tensor(torch.empty_like(weights), mine)
    dist.reduce_scatter_tensor(torch.empty_like(mine), torch.ones_like(weights))  # gradients


n, params = 4, 8400
rings = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring"}
for step, times in ((dp_step, 2), (zero3_step, 3)):
    for dtype in (torch.bfloat16, torch.float32):
        weights = torch.ones(params, dtype=dtype)
        sent = simulate(step, n, weights, algorithms=rings).trace.traffic.max_sent
        print(
            f"{step.__name__:10} {str(dtype):14} a rank sent {sent:7,} bytes;"
            f" {times} (n−1)/n · P = {times * (n - 1) / n * params:,.0f}"
        )

if zero3_known and dp_known:
    for s, b in ((2048, 1), (4096, 1), (4096, 8)):
        forward = zero3_overlap_ratio(s, b, 8, PEAK, OUTSIDE, 2)
        backward = 2 * (2 * 7 / 8 / OUTSIDE) / (4 * s * b / PEAK)  # twice the bytes, twice the work
        print(
            f"{s} · {b} tokens: forward {forward:.3f}, backward {backward:.3f};"
            f" data parallel {dp_overlap_ratio(s * b, 8, PEAK, OUTSIDE, 2):.3f}"
        )

# %% [markdown]
# The ratio is the same in both directions, and the same as for plain data parallelism! In all, ZeRO-3
# sends half as much again, three times $\frac{DP-1}{DP}P$ elements and not twice; but it has the
# forward pass to hide behind as well.
#
# > **Say the unit, once more.** The $2\frac{n-1}{n}P$ of an all-reduce are *elements*, as the record says.
# > Bytes are $e$ times as many. The bandwidth is in bytes, so a missing $e$ makes a ratio 2 or 4 times too
# > good.
#
# One difference remains. When a replica adds up the gradients of several micro-batches before it steps,
# data parallelism sends once, at the end. ZeRO-3 fetches the weights again for each micro-batch, and
# reduce-scatters its gradients, unless each replica has room to keep all of them until the end.

# %% [markdown]
# ## Tensor parallelism
#
# Now each *matrix* is cut into $TP$ parts, and each device multiplies *all* tokens with its part.
# Chapter 17 does it for real. Between two matrices, each device holds $1/TP$ of the activations; before
# a matrix they are all-gathered, or after it they are reduce-scattered.
#
# ## Exercise: tp_overlap_ratio
#
# Compare one all-gather or reduce-scatter of the activations with the product with one $h \times h$ matrix,
# of which this device has its part. The number of tokens is not among the arguments.


# %%
def tp_overlap_ratio(
    hidden: int, tp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """All-gather or reduce-scatter of activations, beside one matrix."""
    ### BEGIN SOLUTION
    elements, operations = hidden * (tp - 1) / tp, 2 * hidden * hidden / tp  # for each token
    return overlap_ratio(elements, operations, peak_flops, peak_bandwidth, bytes_per_element)
    ### END SOLUTION


tp_known = check(tp_overlap_ratio)
tp_known

# %% [markdown]
# A square matrix is the smallest in a block. A block without a gate has $12h^2$ parameters, and four
# such communications forward; the last column is the ratio of the whole block for `TP = 8`.
#
# **Predict:** how does it compare with that of one square matrix?
#
# <details><summary>It is the same: tokens and sizes cancel</summary>
#
# No: the tokens do, but a block does more work for each communication than its smallest matrix.
# </details>
#
# <details><summary>It is four times as large: four communications</summary>
#
# No: there are four, but beside them there is the work of twelve square matrices.
# </details>
#
# <details><summary>It is a third: twelve matrices, four communications</summary>
#
# Yes: three times the work of a square matrix for each communication.
# </details>

# %%
if tp_known:
    for name, bandwidth in (("inside", INSIDE), ("outside", OUTSIDE)):
        for hidden in (4096, 12288):
            ratios = [tp_overlap_ratio(hidden, tp, PEAK, bandwidth, 2) for tp in (2, 4, 8, 16)]
            ratios = [f"{ratio:6.2f}" for ratio in ratios]
            sending = 4 * 2 * hidden * 7 / 8 / bandwidth  # for each token
            block = sending / (2 * 12 * hidden**2 / 8 / PEAK)
            print(f"{name:8} h = {hidden:5}, TP = 2, 4, 8, 16:", *ratios, f" block: {block:6.2f}")

# %% [markdown]
# Tokens cancel, so neither longer sequences nor larger batches help. Only a wider model does, or fewer
# devices, or a faster link. This is why tensor parallelism stays *inside* the machine: 8 GPUs here, and 72
# in racks such as the [GB200 NVL72](https://www.nvidia.com/en-us/data-center/gb200-nvl72/), where NVLink
# joins them all. A whole block does three times better than its smallest matrix: one gather serves queries,
# keys and values, and the two wide matrices of the MLP compute four times as long for the same activations.
# That makes $(3 + 1 + 4 + 4)/4 = 3$.
#
# ### Beside what?
#
# One thing differs from the two parallelisms before. There, the transfer and the computation
# beside it had nothing to do with each other. Here, the product *needs* the activations that are being
# gathered. Written as "gather, then multiply", nothing runs beside the transfer, and the layer takes
# $1 + \text{ratio}$ times as long as its product. (In backward there is something: while the gradient
# of the input is on its way, that of the weight can be computed, as
# [Megatron-LM](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/tensor_parallel/layers.py)
# does.)
#
# To overlap them in forward, the product itself has to be cut into pieces: multiply the tokens that are
# here while the next ones travel ([Wang and others 2023](https://doi.org/10.1145/3567955.3567959)). In
# the cell below four devices pass their tokens around a ring. A simulated rank computes by sleeping:
# `time.sleep` lets virtual time pass.
#
# **Predict:** how long does the layer take in pieces, in units of its product, if the ratio is 0.54? And
# if it is 1.61?
#
# <details><summary>1.54, and 2.61</summary>
#
# No: that is gathering first and multiplying afterwards. In pieces, both go on at the same time.
# </details>
#
# <details><summary>1.00, and 1.86</summary>
#
# Yes: at 0.54 the product hides the link. At 1.61 the link is busy throughout, and the last quarter is
# multiplied after it.
# </details>
#
# <details><summary>1.00, and 1.61</summary>
#
# No for 1.61: the last piece arrives when the link is done, and still has to be multiplied.
# </details>

# %%
def gathered_product(in_pieces, seconds, mine):
    """Pass tokens around a ring, and multiply: each piece as it comes, or all of them at the end."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n):
        moving, received = [], torch.empty_like(mine)
        if step < n - 1:
            moving = [dist.isend(mine, (rank + 1) % n), dist.irecv(received, (rank - 1) % n)]
        if in_pieces:
            time.sleep(seconds / n)  # multiply the tokens that are here
        for request in moving:
            request.wait()
        mine = received
    if not in_pieces:
        time.sleep(seconds)


tp, tokens = 4, 64
for h in (12288, 4096):
    shard = torch.ones(tokens // tp, h, dtype=torch.bfloat16)
    product = 2 * tokens * h * h / tp / PEAK  # seconds
    times = []
    for in_pieces in (False, True):
        done = simulate(gathered_product, tp, in_pieces, product, shard, alpha=0, beta=1 / INSIDE)
        times.append(done.seconds / product)
    (whole, pieces), ratio = times, times[0] - 1
    print(f"h = {h:5}, ratio {ratio:.2f}: gather, then multiply {whole:.2f}; in pieces {pieces:.2f}")

# %% [markdown]
# In pieces, a ratio of 0.54 costs nothing. So the ratio again says whether
# the transfer *can* be hidden; the program decides whether it *is*. (With $n$ pieces there are $n - 1$
# transfers, and the last product has none beside it: up to a ratio of $\frac{n-1}{n}$ all is hidden, and smaller
# pieces come closer to 1, until their products are too small to run at the peak.)
#
# ## Pipeline parallelism
#
# Now whole blocks are dealt out. Each *stage* holds some of them, and sends its activations on to the
# next stage in a plain message, and gradients back. While they travel, the next stage computes the
# micro-batch before.
#
# ## Exercise: pp_overlap_ratio
#
# Compare sending the activations of a micro-batch with the *forward* pass of the next stage. Its blocks
# have a gated MLP of width $4h$.


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
    operations = 2 * layers_in_next_stage * transformer_block_params(hidden, True)  # for each token
    return overlap_ratio(hidden, operations, peak_flops, peak_bandwidth, bytes_per_element)
    ### END SOLUTION


pp_known = check(pp_overlap_ratio)
pp_known

# %%
if pp_known:
    for hidden in (4096, 12288):
        ratios = [f"{pp_overlap_ratio(hidden, layers, PEAK, OUTSIDE, 2):.4f}" for layers in (1, 4, 16)]
        print(f"outside, h = {hidden:5}, 1, 4, 16 layers in a stage:", *ratios)

# %% [markdown]
# These are far below 1, even outside the machine: a stage sends little. But no ratio shows the real price of a
# pipeline. The later stages have nothing to do at the beginning of a step, and nothing left at its end; the
# earlier ones wait in between, until gradients come back. This idle time is the **bubble**. Its size depends on
# the order in which a stage works, which is the subject of chapter [25](25_pipeline.ipynb).
#
# ## What the ratios do not know
#
# All four rest on the same assumptions, and each assumption hides a cost:
#
# - **Both sides reach their peak.** Real matrix products reach only a part of $F$ (then more is hidden
#   than the ratio says), and real links only a part of $B$.
# - **Nothing else uses the link.** Where data, tensor and pipeline parallelism run at the same time, they share it.
# - **Running side by side costs nothing.** On a GPU, a collective takes some of the processors that compute.
# - **There is always something to compute meanwhile.** The *last* gradients, those of the first layer,
#   have no backward pass left to hide behind, and when ZeRO-3 makes its first all-gather there is nothing
#   to compute yet.
# - **A message has no latency.** Chapter 13 knows better: a plain ring over 1024 ranks pays 2046
#   latencies for each bucket, which is why libraries use trees or hierarchies there.
#
# At the peak of both, a ratio above 1 means that the communication *cannot* be hidden. One below 1 does not
# promise that it is.
#
# ## All together
#
# Below is a calculator with all formulas of this chapter. Change the numbers with the mouse or the
# keyboard, and see what a device has to keep and what can be hidden. (In a saved notebook there is only
# a table: run the cell.) It starts with LLaMA's smaller size, in blocks of $16h^2$, on 8 replicas
# without ZeRO.
#
# 1. It does not fit into 80 GB. Find three different ways to make it fit.
# 2. Which of them keep all communication hidden?

# %%
calculator(hidden=4096, layers=32, vocab=32_000, seq=4096, dp=8, zero=0)

# %% [markdown]
# It counts what this chapter counts, for one device of the *first* stage: its memory, and its share of the work
# of a step, for all micro-batches. Its pipelines run in the 1F1B order of chapter 25, in which that stage keeps
# the most micro-batches: as many as there are stages. Tensor parallelism splits the activations too. The
# calculator leaves out the scores of the head (a long row for each token), buffers, and gaps in memory.
#
# <details><summary>Three ways that fit, and one that hides everything</summary>
#
# ZeRO-1 needs 74.46 GB, four stages 62.23 GB, four devices that share each matrix 41.85 GB. With eight replicas none
# of them hides the all-reduce of gradients: 4096 tokens give a ratio of 4.225, whatever the other degrees are. More
# tokens help: ZeRO-3 and five sequences at once reach 0.845, and with recomputation they need 27.1 GB. Recomputing
# costs a third more operations.
# </details>
#
# ### The 65 billion on 64 GPUs
#
# Back to the opening. LLaMA's narrower MLP brings its blocks down to nearly $12h^2$, so let us leave the
# gate out. Here is a plan with a deep pipeline: 2 replicas of 32 stages, with 32 micro-batches. It fits,
# and both ratios are below 1.
#
# **Predict:** what is wrong with it?
#
# <details><summary>The stages send too much to one another</summary>
#
# No: that is a tenth of what could be hidden.
# </details>
#
# <details><summary>Two replicas are too few to average well</summary>
#
# No: averaging is cheaper between two. Its ratio is 0.4.
# </details>
#
# <details><summary>The stages are idle half of the time</summary>
#
# Yes: of 63 turns, each stage has nothing to do in 31.
# </details>

# %%
large = dict(hidden=8192, layers=80, vocab=32_000, glu=False, seq=2048, micro_batch=8, recompute=True)
calculator(**large, dp=2, pp=32, micro_batches=32)

# %% [markdown]
# Half of each step is bubble, so it takes twice as long as its work. *A plan that hides its communication
# need not be fast.* More micro-batches shrink the bubble, as long as the batch may grow: with 256 of them it
# is 10.8 %.
#
# Or leave the pipeline out, and take ZeRO-3 over all 64 devices, with a larger micro-batch:

# %%
zero3 = calculator(**large | {"micro_batch": 10}, dp=64, zero=3)
zero3

# %%
if flops_known and state_known:
    plan = zero3.plan
    days = step_flops(1400 * 10**9, plan.params) / (plan.devices * PEAK) / 86400
    print(f"{training_state_bytes(plan.params) / plan.devices / 1e9:.1f} GB of state on each device")
    longer = days * 4 / 3
    print(f"at the peak {days:.0f} days; with recomputation {longer:.0f}; at half the peak {2 * longer:.0f}")

# %% [markdown]
# Those are the three answers. It fits, with ZeRO-3 and recomputation. It takes the better part of a
# year if the GPUs reach half of their peak. And the all-gathers can just about be hidden, with 20,480
# tokens in a micro-batch. Nothing has run yet, but you know which experiment to try first.
#
# ## Summary
#
# - A block has $12h^2$ parameters, or $16h^2$ with a gate of full width. A model has blocks, an
#   embedding, perhaps a head and positions. Biases and norms are small; the *width of the MLP* is not.
# - Mixed precision with Adam keeps 16 bytes for each parameter. ZeRO splits 12, 14 or all 16 of them
#   among the replicas.
# - For backward a block keeps 16 times $sbh$ elements, 24 times with a gate, and once if it recomputes.
# - A step takes 6 operations for each token and parameter: 2 forward, 4 backward. Attention adds to
#   that; say whether you count the masked half.
# - What can be hidden? Communication over computation, up to 1:
#
# | | ratio | what helps |
# |---|---|---|
# | DP | $\frac{e}{2 \cdot \text{tokens}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}$ | more tokens on a replica |
# | ZeRO-3 | $\frac{e}{2 \cdot \text{seq} \cdot \text{mbs}} \cdot \frac{DP-1}{DP} \cdot \frac{F}{B}$ | more tokens in a micro-batch |
# | TP | $\frac{e \cdot (TP-1)}{2h} \cdot \frac{F}{B}$ | a wider model, fewer devices; cutting the product into pieces |
# | PP | $\frac{e}{32 \cdot h \cdot \text{layers}} \cdot \frac{F}{B}$ | a wider model, more layers in a stage |
#
# - A pipeline also has a bubble, which no ratio shows. More micro-batches make it smaller.
# - Say the unit: elements, numbers of two bytes, bytes. And derive a ratio from two counts.
#
# ### Check yourself
#
# <details><summary>A model of 13 billion parameters is trained on 64 devices with ZeRO-1. How much of its state does each device keep?</summary>
#
# 2 + 2 + 12/64 = 4.19 bytes for each parameter, 54 GB. Weights and gradients are not split, so more
# devices hardly help. ZeRO-3 would keep 16/64 = 0.25 bytes, 3.3 GB.
# </details>
#
# <details><summary>You double the number of replicas and leave the whole batch as it is. What happens to the ratio of data parallelism?</summary>
#
# It doubles (and (DP − 1)/DP grows a little): each replica has half of the tokens, and still sends all
# gradients.
# </details>
#
# <details><summary>Tensor parallelism over 8 devices is not hidden. A colleague suggests a larger micro-batch. Does it help?</summary>
#
# No. What is sent and what is computed both grow with the tokens, and they cancel. First ask whether
# anything runs beside the transfer at all: "gather, then multiply" hides nothing at any ratio.
# </details>
#
# <details><summary>You train with gradients in float32. What changes?</summary>
#
# e = 4, so the ratio of data parallelism doubles, and a parameter takes 18 bytes instead of 16. (These
# are the 18 of [Megatron-LM's own
# estimate](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/theoretical_memory_usage.py).)
# </details>
#
# **Next:** [17 · Sharded matrix products](17_sharded_matmul.ipynb) cuts matrices and activations for
# real.
