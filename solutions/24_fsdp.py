# %% [markdown]
# # 24 · FSDP
#
# ZeRO-1 (chapter [23](23_zero.ipynb)) cuts the state of the optimizer into shards. Weights and gradients
# stay whole on every rank: 4 bytes for each parameter in mixed precision, however many ranks there are.
# For a model of 70 billion parameters that is 280 GB, and no GPU of 80 GB can hold it. So the weights
# also have to be cut. But when a layer computes, it needs its whole matrix. What if it had the whole
# matrix only while it computes?
#
# **You will learn** how to train a model when each rank keeps only a shard of it, why weights stay in
# memory after you think you have freed them, and what it all costs in memory and in bytes sent. You will
# write it: ZeRO-3, which PyTorch calls *fully sharded data parallel*, FSDP.
#
# **You need** chapters [15](15_data_parallel.ipynb), [17](17_sharded_matmul.ipynb) (the backward of a gather
# is a reduce-scatter), and [23](23_zero.ipynb).
#
# **Time:** 2½ hours, and 1 exercise, which is worth 3 points.

# %%
import time
from collections import Counter
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## One layer at a time
#
# In a step, a layer needs its weights twice: in forward, and again in backward, where the gradient of its
# input is a product with the same matrix. In between, they lie idle while the other layers compute.
#
# ![A step of four layers on one rank, with time to the right. In forward, layer after layer, and in
# backward in the opposite order, the whole weights of one layer are there while it computes, and those of
# the next are being gathered. All other layers have only a shard, drawn as a thin
# bar.](../imgs/fsdp_step.png)
#
# So between its two turns a layer keeps just this rank's shard. Shortly before its turn, an all-gather
# brings the shards together, and after it the whole is freed. And when backward has the gradient of a
# layer, a reduce-scatter leaves each rank with the mean for its shard, and the whole gradient is freed.
# (The last layer is the first one in backward, so in the picture it stays. In the exercise it is freed and
# gathered again, like the others.)
#
# ![The weights of one layer on four ranks. Each rank holds one shard. An all-gather gives every rank all
# four, and the layer computes. After backward every rank has a whole gradient of its own, and a
# reduce-scatter gives each the mean of its shard.](../imgs/fsdp_layer.png)
#
# **Predict:** 80 layers of equal size, 64 ranks. What share of all the weights does a rank hold at the
# worst moment, when one layer computes and the next one is being gathered?
#
# <details><summary>Its shards: less than 2 %</summary>
#
# No: a layer computes with its whole matrix, and the next one is already on its way.
# </details>
#
# <details><summary>Its shards and two whole layers: about 4 %</summary>
#
# Yes: 1/64 of everything, and 2 of 80 layers.
# </details>
#
# <details><summary>All of them: in the end every layer has been gathered</summary>
#
# No: each layer is freed after its turn, so no more than two are ever whole.
# </details>

# %%
layers, ranks = 80, 64
print(f"shards: {1 / ranks:.1%} of the weights; two whole layers: {2 / layers:.1%}")

# %% [markdown]
# And no rank ever holds all the gradients, or all of the optimizer's state.
#
# ## What the stages keep and send
#
# Here is a step of Adam, reduced to what chapter 23 called the row: all $P$ parameters, end to end. `stage`
# says what is cut: 0 nothing, 1 the optimizer's state, 2 also the gradients, 3 also the weights.
# Everything is in float32, so a parameter has 4 bytes of weight, 4 of gradient, and 8 of state. In stage 3
# the row is a single layer, gathered twice.
#
# On 8 ranks, how many bytes for each parameter does a rank hold between two steps, in each stage? And how many
# elements does it send in a step, in units of $P$? Chapter [16](16_scale_math.ipynb) has the formulas for both.

# %%
from grader.instruments import HeldStorages  # counts the bytes held, as in chapter 23


def step_of_stage(stage, P):
    """Make one step; return the bytes that this rank holds after it."""
    n = dist.get_world_size()
    held, size = HeldStorages(list), P // n
    part = slice(dist.get_rank() * size, (dist.get_rank() + 1) * size)
    with held:
        weights = torch.ones(size if stage == 3 else P)
        m, v = torch.zeros(2, size if stage else P)
        for _ in ("forward", "backward") if stage == 3 else ():
            whole = torch.empty(P)
            dist.all_gather_into_tensor(whole, weights)
            del whole
        gradient = torch.full((P,), 0.5)  # what backward leaves
        if stage == 0:
            dist.all_reduce(gradient)
        else:
            mean = torch.empty(size)
            dist.reduce_scatter_tensor(mean, gradient)
            if stage == 1:
                gradient[part] = mean
            else:
                gradient = mean
            del mean
        mine = weights if stage in (0, 3) else weights[part]
        of_mine = gradient[part] if stage == 1 else gradient
        m += 0.1 * (of_mine / n - m)
        v += 0.01 * ((of_mine / n) ** 2 - v)
        mine -= 0.1 * m / (v.sqrt() + 1e-8)
        if stage in (1, 2):
            dist.all_gather_into_tensor(weights, mine.clone())
    held.settle(0)  # gloo's thread lets go of the last tensors a moment later
    return held.nbytes


n, P = 8, 8000
formulas = {0: 16.0, 1: 8 + 8 / n, 2: 4 + 12 / n, 3: 16 / n}
for stage, formula in formulas.items():
    ran = run(step_of_stage, n, stage, P, seconds=300)
    (bytes_held,) = {nbytes / P for nbytes in ran}  # the same on all ranks
    sent = max(ran.trace.sent_elements) / P
    print(f"stage {stage}: {bytes_held:4} bytes a parameter, formula {formula:4}; sent {sent:.3f} P")

# %% [markdown]
# Memory falls with every stage, and in the third all of it shrinks with $n$: $16/n$ bytes. Up to stage 2 a
# rank sends what it sends in data parallelism, $\frac{2(n-1)}{n}P$ elements. Stage 3 sends half as much
# again, since it gathers the weights twice instead of once. Both agree with
# [the paper](https://arxiv.org/abs/1910.02054), which proposes all three stages. (The formula is chapter
# 16's sum with 4 + 4 + 8 bytes in place of 2 + 2 + 12.)
#
# ## First step: shard and gather
#
# You will write a class that does this to any model. It is a lot at once, so begin with what is sent, for one
# weight and in one dtype. A gather whose backward is a reduce-scatter is an `autograd.Function`: if the whole
# weight comes out of it and the *shard* goes in, then autograd itself puts what `backward` returns into
# `shard.grad`. (No exercise judges this cell; the next one tries it.)

# %%
def row_of(whole):
    """A whole weight or gradient as a row, padded so that n divides its length."""
    ### BEGIN SOLUTION
    return nn.functional.pad(whole.flatten(), (0, -whole.numel() % dist.get_world_size()))
    ### END SOLUTION


def weight_of(mine, shape):
    """The whole weight of this shape, of which each rank has a shard."""
    ### BEGIN SOLUTION
    row = mine.new_empty(dist.get_world_size() * len(mine))
    dist.all_gather_into_tensor(row, mine)
    return row[: shape.numel()].view(shape)
    ### END SOLUTION


class Gathered(torch.autograd.Function):
    """The whole weight, from its shard; and in backward the other way round."""

    @staticmethod
    def forward(ctx, shard, shape, dtype=None):
        """Return the whole weight. (The dtype is for the second step.)"""
        ### BEGIN SOLUTION
        ctx.own = shard.dtype
        return weight_of(shard.detach().to(dtype or shard.dtype), shape)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        """Return this rank's shard of the mean gradient, and None for the other arguments."""
        ### BEGIN SOLUTION
        n, row = dist.get_world_size(), row_of(gradient.to(ctx.own))
        mean = row.new_empty(len(row) // n)
        dist.reduce_scatter_tensor(mean, row)
        return mean / n, None, None
        ### END SOLUTION


# %% [markdown]
# Here are six layers of 101 × 99 on 4 ranks, each of which has its own input. A whole weight has no name here: it comes
# out of `Gathered` and goes straight into its layer. Are the gradients right? And how much of the weights does a
# rank hold after forward, which should be a quarter?

# %%
def layers_in_shards():
    torch.manual_seed(0)
    rank, n = dist.get_rank(), dist.get_world_size()
    weights = [0.1 * torch.randn(101, 99) for _ in range(6)]
    xs = torch.randn(n, 1, 99)

    def result(x, weight_of):
        for i in range(6):
            x = nn.functional.linear(x, weight_of(i)).tanh()[:, :99]
        return x.square().mean()

    wholes = [weight.clone().requires_grad_() for weight in weights]  # for comparison
    sum(result(x, wholes.__getitem__) for x in xs).backward()

    held = HeldStorages(lambda: weights)  # these aside
    with held:
        shards = [row_of(weight).chunk(n)[rank].clone().requires_grad_() for weight in weights]
        x = xs[rank].clone().requires_grad_()  # as in the middle of a model
        loss = result(x, lambda i: Gathered.apply(shards[i], weights[i].shape))
    held.settle(0)
    after_forward = held.nbytes
    loss.backward()
    should = [row_of(whole.grad / n).chunk(n)[rank] for whole in wholes]
    right = all(torch.allclose(one.grad, mean, atol=1e-6) for one, mean in zip(shards, should))
    return right, after_forward / sum(weight.nbytes for weight in weights)


tried = run(layers_in_shards, 4, may_fail=True)
if tried.failure is None:
    rights, shares = zip(*tried)
    print(f"gradients right: {all(rights)}; held after forward: {max(shares):.1f} of all weights")

# %% [markdown]
# The gradients are right, and nothing is saved: beside its shards, a rank still holds every layer that it has
# gathered. Who keeps them?
#
# ## Freed, and still there
#
# We look at one layer, in one process. `HeldStorages` adds up the memory that operations inside its `with` have used
# and that is still alive. We make a matrix, multiply, and drop it, as after a gather.
#
# **Predict:** a matrix of 512 × 512 in float32 takes 1 MiB. How much is held after `del whole`?
#
# <details><summary>Nothing: <code>del</code> frees the matrix</summary>
#
# No: `del` takes away a name. The memory is free when nothing refers to it any more, and something
# still does.
# </details>
#
# <details><summary>1 MiB, until Python's garbage collector runs</summary>
#
# No: Python frees a tensor as soon as the last reference to it is gone, and here one is left.
# </details>
#
# <details><summary>1 MiB, as long as <code>y</code> lives</summary>
#
# Yes: backward will need the matrix, so autograd keeps it behind `y`.
# </details>

# %%
def megabytes(held):
    return f"{held.nbytes / 2**20:.2f} MiB"


x = torch.ones(1, 512, requires_grad=True)
held = HeldStorages(lambda: [x])
with held:
    whole = torch.ones(512, 512, requires_grad=True)
    y = nn.functional.linear(x, whole)
print("while it computes:", megabytes(held))
del whole
print("after del:        ", megabytes(held))
del y
print("after del y:      ", megabytes(held))

# %% [markdown]
# Autograd builds a graph behind `y`, and saves in it what backward will need. We can watch:
# [`saved_tensors_hooks`](https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks)
# takes two functions. `pack` is called with each tensor that autograd is about to save, and what it returns is
# saved in the tensor's place. `unpack` is called in backward, and has to give the tensor back.
#
# **Predict:** `linear` below multiplies a row of 256 numbers with a weight of 512 × 256. What does `pack` see?
#
# <details><summary>The input, and the weight itself</summary>
#
# No: the weight's memory is there, but as a tensor of another shape.
# </details>
#
# <details><summary>The input, and a view of the weight</summary>
#
# Yes: `linear` multiplies with the transposed weight, and that is a view of the same memory.
# </details>
#
# <details><summary>The input alone</summary>
#
# No: that is enough for the gradient of the weight. The gradient of the input is a product with the
# weight.
# </details>

# %%
def pack(tensor):
    same = tensor.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    print(f"packs {tuple(tensor.shape)}, strides {tensor.stride()}; in the memory of the weight: {same}")
    return tensor


whole = torch.ones(512, 256, requires_grad=True)
x = torch.ones(1, 256, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
    y = nn.functional.linear(x, whole)

# %% [markdown]
# Two tensors are saved: the input, which the gradient of the weight needs, and the *transposed* weight, for
# the gradient of the input. That one is a **view**: another shape for the same memory. So it does not
# help to give the layer another weight, as in `layer.weight.data = shard`. The layer has forgotten the
# whole matrix, but the graph has not.
#
# There are two ways out, and both are in use:
#
# - **Save something else.** `pack` may return anything, such as a note on how to get the weight again, and
#   `unpack` gets it again.
# - **Pull the memory away** from under all views: `tensor.untyped_storage().resize_(0)` frees it, no matter
#   what still refers to it. Before backward the storage gets its size back, and is filled again. (FSDP in
#   torch works [like this](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/fsdp/_fully_shard/_fsdp_param.py).)
#
# Here is the first way, on something smaller. A dropout mask is as large as its input, but its seed is enough to
# draw it again.

# %%
def mask(seed, shape):
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5).float()


x = torch.ones(512, 512, requires_grad=True)
for saves in ("the mask", "its seed"):
    held, drawn = HeldStorages(lambda: [x]), mask(3, x.shape)

    def pack(tensor, address=drawn.data_ptr()):
        return ("seed", 3) if tensor.data_ptr() == address else tensor

    def unpack(packed):
        return mask(packed[1], x.shape) if isinstance(packed, tuple) else packed

    hooks = (pack, unpack) if saves == "its seed" else (lambda tensor: tensor,) * 2
    with held, torch.autograd.graph.saved_tensors_hooks(*hooks):
        y = (x * drawn).sum()
    del drawn
    x.grad = None
    print(f"autograd saves {saves}: {megabytes(held)} held;", end=" ")
    y.backward()
    print("gradient right:", torch.equal(x.grad, mask(3, x.shape)))

# %% [markdown]
# (`pack` knows the mask by its address. If it referred to the mask itself, the mask would stay: the graph
# keeps `pack` as long as it keeps what was packed.)
#
# And here is the second way: we empty the storage of a weight of twos, and fill it with threes before backward.
#
# **Predict:** which gradient does `x` get?
#
# <details><summary>512 · 2, of the weight that forward used</summary>
#
# No: autograd has saved a view, not a copy. The twos are gone.
# </details>
#
# <details><summary>None: autograd notices the change, and raises</summary>
#
# No: it counts the changes of a tensor, and would notice most of them, but not one through `.data`.
# </details>
#
# <details><summary>512 · 3, of what is in the storage now</summary>
#
# Yes: the view in the graph shows whatever is there when backward reads it.
# </details>

# %%
x = torch.ones(1, 256, requires_grad=True)
whole = torch.full((512, 256), 2.0)
y = nn.functional.linear(x, whole).sum()
whole.untyped_storage().resize_(0)
print("bytes while it is empty:", whole.untyped_storage().nbytes())
whole.untyped_storage().resize_(4 * 512 * 256)
whole.data.fill_(3.0)  # .data, so that autograd does not notice the change
y.backward()
print("gradient of x:", x.grad[0, :3].tolist())

# %% [markdown]
# The view in the graph shows what is in the storage when backward reads it, and a change through `.data`
# escapes autograd's check. Here that is what we want; anywhere else it is how gradients silently go wrong. And
# if the storage is still empty when backward runs, there is no memory to read at all.
#
# ## Narrow copies
#
# The weights travel twice in each step, so it pays to send 2 bytes instead of 4. In **mixed precision** a
# rank casts its shard to bfloat16, and gathers that. The layer then multiplies in bfloat16, in which an H100
# does 989 · 10¹² operations a second, against 67 · 10¹² in float32 outside its tensor cores
# ([data sheet](https://www.nvidia.com/en-us/data-center/h100/), which doubles the first for sparse
# matrices; with TF32, tensor cores also take float32 numbers, rounded to 11 bits, at half the rate of bfloat16).
# The shard itself stays in float32.
#
# Why not also keep the shards in bfloat16?
#
# **Predict:** what becomes of a weight of 1 in bfloat16 that 1,000 steps change by 0.001 each?
#
# <details><summary>About 2, with fewer digits than in float32</summary>
#
# No: rounding does not hit the sum once at the end. It hits every step, and each time in the same
# direction.
# </details>
#
# <details><summary>1, as it was</summary>
#
# Yes: above 1, the next number of bfloat16 is 0.008 away, so each step is rounded back.
# </details>
#
# <details><summary>Something between, since about every other step is lost</summary>
#
# No: what is lost does not depend on luck. Each step is less than half of the distance to the next
# number.
# </details>

# %%
for dtype in (torch.float32, torch.bfloat16):
    weight = torch.ones(1, dtype=dtype)
    for _ in range(1000):
        weight += 0.001
    print(f"{str(dtype):15} {weight.item():.3f}")

# %% [markdown]
# Just above 1, the numbers of bfloat16 are 2⁻⁷ ≈ 0.008 apart, so each step is rounded away. The gradient of
# one step is a noisy estimate anyway, but the *sum* of many steps must not lose the small ones. So shards
# (the "fp32 master weights" of chapter 16), the means of the gradients, and the optimizer's state stay in
# the parameters' own dtype. (In torch's FSDP, `MixedPrecisionPolicy(param_dtype=torch.bfloat16)` alone also reduces
# gradients in bfloat16. Add `reduce_dtype=torch.float32`.)
#
# ## Exercise: FullySharded (3 points)
#
# The second step: `FullySharded(module, compute_dtype=None)` wraps a model and trains it like this:
#
# ```python
# model = FullySharded(model)
# optimizer = torch.optim.AdamW(model.parameters())  # of this rank's shards
# loss = loss_function(model(x), y)
# optimizer.zero_grad()
# loss.backward()
# model.finish_gradient_synchronization()
# optimizer.step()
# whole = model.full_state_dict()
# ```
#
# - The wrapped model is `.module`. All ranks begin with rank 0's weights.
# - A **layer** is a module that has parameters of its own, such as an `nn.Linear`; the model itself may be
#   one. It is called once in a forward. Layers are not nested and share no parameters. No parameter is
#   frozen.
# - A parameter of **more than 128 elements** is held as shards; `parameters()` gives this rank's. The layer
#   has it whole only during its forward and its backward. Any other parameter is replicated: every rank has
#   all of it.
# - After `finish_gradient_synchronization()` the gradients are means over the ranks: reduce-scattered for shards,
#   all-reduced for small parameters, both *in the parameters' own dtype*, since a sum in bfloat16 loses digits. One
#   step of an optimizer that works element by element is then the same step as without shards.
# - With a `compute_dtype`, weights are gathered in it, and a layer computes in it: it also casts its
#   floating inputs, and small parameters where they meet them.
# - `full_state_dict()` has the names of the module's own `state_dict()`, buffers included, and whole weights
#   in their own dtype.
#
# Limits:
#
# - Between calls a rank holds at most $\lceil P/n \rceil$ elements, plus 128 for each parameter. Gradients and
#   the optimizer's state are not counted. We also look between forward and backward, with batches so small
#   that what autograd keeps of them fits in.
# - Never more than two layers are gathered at once, and each at most twice in a step.
# - `all_gather*`, `reduce_scatter*` and `broadcast` are allowed, and `all_reduce` for the replicated
#   parameters.
#
# The method that begins with an underscore is a suggestion; do it another way if you like. Your `row_of`, `weight_of`
# and `Gathered` do the sending. To let a layer use the whole weight, you may replace `layer.forward`, and put plain
# tensors into `layer._parameters` while it runs. Begin without `compute_dtype`, and with one `nn.Linear`.

# %%
class FullySharded(nn.Module):
    """Trains a model of which every rank holds a shard, and gathers one layer at a time."""

    def __init__(self, module: nn.Module, compute_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.module, self.compute_dtype = module, compute_dtype
        self.shapes = {}  # of the whole parameters, by shard
        self.again = {}  # what backward has gathered and still needs, by shard
        for layer in module.modules():
            own = dict(layer.named_parameters(recurse=False))
            for name, p in own.items():
                dist.broadcast(p.data, 0)
                if p.numel() > 128:
                    mine = row_of(p.data).chunk(dist.get_world_size())[dist.get_rank()]
                    shard = nn.Parameter(mine.clone(), p.requires_grad)
                    self.shapes[shard] = p.shape
                    setattr(layer, name, shard)
            if own:
                layer.forward = self._around(layer, layer.forward)
        ### END SOLUTION

    def _around(self, layer, compute):
        """A forward for the layer: it gathers, lets the old forward compute, and frees."""
        ### BEGIN SOLUTION
        def cast(value):
            floating = isinstance(value, torch.Tensor) and value.is_floating_point()
            return value.to(self.compute_dtype) if self.compute_dtype and floating else value

        def unpack(packed):
            if isinstance(packed, torch.Tensor):
                return packed
            shard, view = packed
            if shard not in self.again:
                mine = shard.detach().to(self.compute_dtype or shard.dtype)
                self.again[shard] = weight_of(mine, self.shapes[shard])
            return self.again[shard].as_strided(*view)

        def done(shard, gradient):  # backward needs the weight no more
            self.again.pop(shard, None)

        def forward(*inputs):
            own, shards = dict(layer._parameters), {}
            for name, p in layer.named_parameters(recurse=False):
                if p not in self.shapes:
                    layer._parameters[name] = cast(p)
                    continue
                whole = Gathered.apply(p, self.shapes[p], self.compute_dtype)
                if whole.requires_grad:
                    whole.register_hook(partial(done, p))
                layer._parameters[name] = whole
                shards[whole.untyped_storage().data_ptr()] = p

            def pack(tensor):
                shard = shards.get(tensor.untyped_storage().data_ptr())
                view = tensor.size(), tensor.stride(), tensor.storage_offset()
                return tensor if shard is None else (shard, view)

            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                result = compute(*map(cast, inputs))
            layer._parameters.update(own)
            return result

        return forward
        ### END SOLUTION

    def forward(self, *inputs):
        """What the module itself gives."""
        ### BEGIN SOLUTION
        return self.module(*inputs)
        ### END SOLUTION

    def finish_gradient_synchronization(self) -> None:
        """Average the gradients that backward has left as they were."""
        ### BEGIN SOLUTION
        for p in self.parameters():
            if p not in self.shapes and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        ### END SOLUTION

    def full_state_dict(self) -> dict:
        """The module's state_dict, with whole parameters; all ranks call it."""
        ### BEGIN SOLUTION
        state = dict(self.module.state_dict())
        for name, p in self.module.named_parameters():
            if p in self.shapes:
                state[name] = weight_of(p.detach(), self.shapes[p])
        return state
        ### END SOLUTION


fsdp_works = check(FullySharded)
fsdp_works

# %% [markdown]
# ## One process, four ranks
#
# The task is that of chapter 15, two spirals, and the network is deeper. Four ranks train it with your class, each on a
# quarter of the points, and for comparison one process does, with all points and whole weights. Then the four
# train once more, in bfloat16.
#
# How many digits of the losses agree with those of the one process, in float32? And in bfloat16, which has 8
# bits of precision?

# %%
def spirals(count=256):
    """Points on two spirals, and which one each is on."""
    generator = torch.Generator().manual_seed(1)
    radius = 0.2 + 0.8 * torch.rand(count, generator=generator)
    which = torch.arange(count) % 2
    angle = torch.pi * (2 * radius + which)
    points = 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.03 * torch.randn(count, 2, generator=generator), which


def network(width=64, depth=4):
    torch.manual_seed(0)
    hidden = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), *hidden, nn.Linear(width, 2))


def training(wrap, compute_dtype=None, data=None, steps=30):
    """Train on this rank's part of the data; return the losses."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = wrap(network(), compute_dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad()
        loss.backward()
        model.finish_gradient_synchronization()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


class Alone(nn.Module):
    """Whole weights, for one rank."""

    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)

    def finish_gradient_synchronization(self):
        pass


data = spirals()
if fsdp_works:
    single = run(training, 1, Alone, None, data, seconds=300)[0]
    sharded = torch.stack(list(run(training, 4, FullySharded, None, data, seconds=300))).mean(0)
    narrow = torch.stack(list(run(training, 4, FullySharded, torch.bfloat16, data, seconds=300))).mean(0)
    print("the first loss agrees to 1e-6:            ", bool((single[0] - sharded[0]).abs() < 1e-6))
    print("all losses agree to 1e-3:                 ", torch.allclose(single, sharded, atol=1e-3))
    print("in bfloat16, the first agrees to 1e-6:    ", bool((single[0] - narrow[0]).abs() < 1e-6))
    print("in bfloat16, all agree to 0.05:           ", torch.allclose(single, narrow, atol=0.05))
    halved = max(sharded[-1], narrow[-1]) < single[0] / 2
    print("the loss has fallen to a half, in both:   ", bool(halved))
    figure, axes = plt.subplots(figsize=(8, 3))
    axes.plot(single, lw=5, alpha=0.4, label="one process")
    axes.plot(sharded, ls="--", color="black", label="four ranks, shards")
    axes.plot(narrow, ls=":", label="four ranks, computed in bfloat16")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend(loc="upper right")
    plt.show()

# %% [markdown]
# In float32, only the order of additions differs: the sum over the batch is made of four parts. Where a
# weight is kept between its turns makes no difference to what is computed. In bfloat16 even the first
# loss differs, but none is off by more than 0.05, and the curves end in the same place.
#
# ## What is there, and when
#
# Now for the memory. `Curve` notes how much is held after each operation of one step. The network has 6 layers
# of 256 × 256 and a batch of 4, so nearly all of the memory is for weights and gradients. For comparison,
# `Replicated` has whole weights on all ranks, and all-reduces their gradients.
#
# Draw both curves on paper, with time to the right: forward, backward, the end. That of `Replicated` begins at
# 4 bytes a parameter.
#
# **Predict:** what does yours look like on four ranks?
#
# <details><summary>Flat, at a quarter of 4 bytes</summary>
#
# No: backward also leaves gradients, and in between the layers are whole, one after the other.
# </details>
#
# <details><summary>A comb, from a quarter of 4 bytes to a quarter of 8</summary>
#
# Yes: each tooth is a layer that is gathered and freed, and backward adds the shards of the gradients.
# </details>
#
# <details><summary>As high as the other in the middle, where layers compute</summary>
#
# No: the layers do not compute at the same time, and each is freed after its turn.
# </details>

# %%
class Replicated(Alone):
    """Data parallelism: whole weights everywhere, and an all-reduce of each gradient."""

    def finish_gradient_synchronization(self):
        for p in self.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


class Curve(HeldStorages):
    """Notes the bytes that are held after each operation."""

    def __init__(self):
        super().__init__(list)
        self.points = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self.points.append(self.nbytes)
        return result


def one_step(wrap):
    """Bytes between calls: before the step, after forward, after it; and those of every operation."""
    torch.manual_seed(0)
    held = Curve()
    with held:
        model = wrap(nn.Sequential(*[nn.Linear(256, 256, bias=False) for _ in range(6)]))
    held.settle(0)
    between, held.points = [held.nbytes], []
    x = torch.randn(4, 256)
    with held:
        loss = model(x).square().sum()
    held.settle(0)
    between.append(held.nbytes)
    with held:
        loss.backward()
        model.finish_gradient_synchronization()
    del loss
    held.settle(0)
    return [*between, held.nbytes], held.points


P = 6 * 256 * 256
peaks = {}
if fsdp_works:
    figure, axes = plt.subplots(figsize=(7, 3))
    for name, wrap in (("whole weights", Replicated), ("yours", FullySharded)):
        (before, after_forward, after), points = run(one_step, 4, wrap, seconds=300)[0]
        print(
            f"{name:14} bytes a parameter: {before / P:.2f} before the step,"
            f" {after_forward / P:.2f} after forward, {after / P:.2f} with the gradients"
        )
        axes.plot([i / len(points) for i in range(len(points))], [b / P for b in points], label=name)
        peaks[name] = max(points) / P
    axes.set_xlabel("part of the step's operations")
    axes.set_ylabel("bytes held a parameter")
    axes.set_ylim(0)
    axes.legend()
    plt.show()

# %% tags=["claim"]
assert 0.35 < peaks["yours"] / peaks["whole weights"] < 0.65, "at its peak ours holds about half as much"

# %% [markdown]
# With whole weights the curve begins at 4 bytes a parameter and climbs through backward to 8, as one gradient
# after the other is added. The teeth of your comb are higher in backward, because that layer's whole
# gradient is also there. So at its peak our class holds about half as much as the other, and not a quarter. (Here
# a layer is a sixth of the network. With 80 layers the teeth would be small.) The few hundredths on top are the
# layers' inputs, which backward needs.
#
# ## The next layer, in the meantime
#
# If your class is like ours, gathering and computing take turns. But the gather of the next layer needs
# nothing from this one: it can run **while** this one computes. That is *prefetching*. The price is a second
# gathered layer, hence the limit of two in the exercise.
#
# The following runs the forward of 24 layers on 8 simulated ranks. A layer has 40 MB of weights (as in chapter
# 15, a thousandth of the bytes travel, on links of a thousandth of the speed). At 10 GB/s, 7/8 of it reach a
# rank in 3.5 ms, plus a little latency. The computing is a `time.sleep`.
#
# **Predict:** a layer computes for 1, 3.6 or 10 ms. Where does prefetching save the largest part of the time?
#
# <details><summary>At 1 ms, where gathering is most of it</summary>
#
# No: there is little computing for a gather to hide behind. Most of its time still shows.
# </details>
#
# <details><summary>At 3.6 ms, where both take equally long</summary>
#
# Yes: the gathers hide almost completely, and they were half of the time.
# </details>
#
# <details><summary>At 10 ms, where there is most room to hide</summary>
#
# No: the gathers hide completely, but they were only a quarter of the time.
# </details>

# %%
def forward_of_layers(prefetch, computing, layers=24):
    """Seconds of a forward, on the virtual clock."""
    shard = torch.ones(1250)

    def gather():
        row = torch.empty(dist.get_world_size() * len(shard))
        return row, dist.all_gather_into_tensor(row, shard, async_op=True)

    dist.barrier()
    started = time.perf_counter()
    coming = gather()
    for layer in range(layers):
        row, request = coming
        request.wait()
        another = layer + 1 < layers
        if prefetch and another:
            coming = gather()
        mark("computing")
        time.sleep(computing)
        mark("computed")
        if not prefetch and another:
            coming = gather()
    return time.perf_counter() - started


links = {"alpha": 10e-6, "beta": 1e3 / 10e9, "algorithms": {"all_gather": "ring"}}
print("computing a layer   in turns   prefetching")
for computing in (1e-3, 3.6e-3, 10e-3):
    turns, ahead = (
        max(simulate(forward_of_layers, 8, prefetch, computing, record=False, **links))
        for prefetch in (False, True)
    )
    print(f"{1e3 * computing:14.1f} ms {1e3 * turns:8.1f} ms {1e3 * ahead:9.1f} ms")

# %% [markdown]
# And here are four layers on rank 0, which compute for 3.6 ms each, in the colours of the first picture. Its link
# is busy while the seven other shards of a layer arrive. Which bars of the second run overlap with nothing?

# %%
figure, both = plt.subplots(2, figsize=(9, 3.4), sharex=True, layout="constrained")
for axes, prefetch, title in zip(both, (False, True), ("in turns", "prefetching")):
    trace = simulate(forward_of_layers, 8, prefetch, 3.6e-3, 4, **links).trace
    arriving = [op for op in trace.operations[0] if op.kind == "recv" and op.nbytes]  # 7 a layer
    marks = [one.time for one in trace.marks[0]]
    for layer, colour in enumerate(("#0072B2", "#E69F00", "#009E73", "#CC79A7")):
        gather = arriving[7 * layer].posted, arriving[7 * layer + 6].done
        for row, (begin, end) in enumerate((gather, marks[2 * layer : 2 * layer + 2])):
            start, width = begin / 1e6, (end - begin) / 1e6
            axes.barh(row, width, left=start, color=colour, alpha=0.5, edgecolor="black")
            axes.text(start + width / 2, row, f"layer {layer}", ha="center", va="center", color="black")
    axes.set_yticks((0, 1), ("link", "computing"))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
both[1].set_xlabel("ms")
plt.show()

# %% [markdown]
# In turns, the times add up. With prefetching only the longer of the two counts, plus what overlaps with
# nothing: the first gather, and the last layer's computing. It helps most where both are equally long. Chapter
# 16 tells which one is longer: gathering takes $\frac{e}{2 \cdot \text{seq} \cdot \text{mbs}} \cdot
# \frac{n-1}{n} \cdot \frac{F}{B}$ of the computing time. So it depends on how many tokens a rank has in its
# batch, since the same weights travel for one token as for a million. The [JAX scaling
# book](https://jax-ml.github.io/scaling-book/training/) derives the same bound for TPUs, and the [Ultra-Scale
# Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook) discusses it for GPUs.
#
# In backward, prefetching is harder: *which* layer comes next? Implementations take the order of forward,
# reversed. And the host must not run too far ahead: if it issues the gathers of many layers before the GPU
# has computed one, all of their memory is needed at once. The [FSDP paper](https://arxiv.org/abs/2304.11277)
# (Zhao and others 2023) describes how the first version in torch limits that, to two gathers in flight. The
# second version, which comes next, does not have to hold the host back.
#
# ## Compared with torch's own
#
# [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html) is the second
# version of FSDP in torch. Called on a layer, it makes that layer a unit of gathering; called on the whole
# model at the end, it takes what is left. It "[chunks each parameter on
# dim-0](https://docs.pytorch.org/docs/2.7/distributed.fsdp.fully_shard.html)", so a rank has some rows of each
# matrix, small parameters included. It also runs on gloo.
#
# Look for three things: are the losses the same to 1e-5, do torch's ranks send less than yours, more, or the
# same, and where do its cuts fall? Think of a parameter of two rows on four ranks.

# %%
class TorchFSDP(nn.Module):
    """torch's fully_shard, with the interface of yours."""

    def __init__(self, module, compute_dtype=None):
        super().__init__()
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in module:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        self.module = fully_shard(module, mesh=mesh)

    def forward(self, x):
        return self.module(x)

    def finish_gradient_synchronization(self):
        pass


def measured(wrap, data=None, steps=10):
    """Train; return the losses, and the bytes of parameters and gradients after a step."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    held, losses = HeldStorages(list), []
    with held:
        model = wrap(network(width=256))
    mark("steps begin")
    for step in range(steps):
        for p in model.parameters():
            p.grad = None
        with held:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            model.finish_gradient_synchronization()
        losses.append(loss.item())
        del loss
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    held.settle(0)
    return torch.tensor(losses), held.nbytes


if fsdp_works:
    P = sum(p.numel() for p in network(width=256).parameters())
    results = {
        name: run(measured, 4, wrap, data, seconds=300)
        for name, wrap in (("yours", FullySharded), ("torch's", TorchFSDP))
    }
    (yours, _), (torchs, _) = results["yours"][0], results["torch's"][0]
    print("the same losses to 1e-5:", torch.allclose(yours, torchs, atol=1e-5))
    for name, ran in results.items():
        held_bytes = [round(nbytes / P, 2) for _, nbytes in ran]
        steps = ran.trace.split_at("steps begin")[1]  # without what the wrapping sends
        calls = Counter(op.kind for op in steps.operations[0])
        sent, each = steps.sent_elements[0] / 10 / P, {kind: calls[kind] // 10 for kind in sorted(calls)}
        print(f"{name:8} bytes a parameter by rank: {held_bytes}")
        print(f"{'':8} a step sends {sent:.2f} P, in {each}")

# %% [markdown]
# Torch's ranks send $\frac{n-1}{n} P$ elements three times, 2.25 P. If your class is like ours, it sends a
# little less: what backward does not ask for, such as a bias or the weight of the first layer, is not gathered
# again. Every rank holds a quarter of the weights and gradients, $8/n = 2$ bytes a parameter, and a little
# more. What differs is where the cuts fall. The last matrix has two rows, so two of torch's four ranks have one
# each and the others only padding, while flat cuts divide everything evenly. In return a rank's part of a matrix is
# itself a matrix, which makes other kinds of parallelism and state dicts simpler:
# [the documentation](https://docs.pytorch.org/docs/2.7/distributed.fsdp.fully_shard.html) says why torch went
# from flat cuts to rows. Torch also gathers the weight and the bias of a layer in one call.
#
# Four more things are worth knowing:
#
# - With `reshard_after_forward=False` a layer stays whole from forward to backward, as in ZeRO-2, which saves a gather
#   and costs memory. With a number in its place it is cut again, but only among that many ranks, such as those of a
#   node.
# - `fully_shard` does not need a whole model, as ours does on every rank. The model can be built on the `meta` device,
#   which has no memory, and be cut there; then
#   [the shards are filled](https://docs.pytorch.org/tutorials/intermediate/FSDP_tutorial.html), for example from a
#   checkpoint (chapter [22](22_failures.ipynb)).
# - Clipping needs the norm of all gradients (chapter [23](23_zero.ipynb)). `clip_grad_norm_` takes it over all ranks
#   if the shards are torch's, but over this rank's alone if they are ours.
# - Recomputation (chapter [16](16_scale_math.ipynb)) needs no further gather: a layer that is whole for its backward
#   can repeat its forward first.
#
# How long does a step take on four ranks of this computer, with whole weights, with your class and with torch's?

# %% tags=["nbval-ignore-output"]
def seconds_of_a_step(wrap, data=None, steps=12):
    x, y = data
    model = wrap(network(width=256))
    taken = []
    for _ in range(steps):
        dist.barrier()
        started = time.perf_counter()
        nn.functional.cross_entropy(model(x), y).backward()
        model.finish_gradient_synchronization()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[steps // 2]


if fsdp_works:
    times = {
        name: max(run(seconds_of_a_step, 4, wrap, data, seconds=300))
        for name, wrap in (("whole weights", Replicated), ("yours", FullySharded), ("torch's", TorchFSDP))
    }
    for name, seconds in times.items():
        print(f"{name:14} {seconds / times['whole weights']:.2f} of the step with whole weights")

# %% [markdown]
# The ratios vary from run to run, and a computer whose ranks share its processors says little about a
# cluster: every call is recorded, and no gather hides behind computing. (In backward torch asks for the next
# layer before it reduces this one's gradients, but on gloo it waits for each call.) Trust the number of calls
# and of bytes above instead.
#
# ## Summary
#
# The weights of a model that no GPU can hold are cut like everything else, and put together one layer at a
# time. On 64 ranks, the 16 bytes of a parameter become a quarter of a byte, plus a layer or two.
#
# - A layer is gathered before its forward and again before its backward, and freed after each; its gradient
#   is reduce-scattered as soon as it is complete. Gather and reduce-scatter are each other's backward.
# - The whole weight is freed only when *nothing* refers to its memory: autograd saves weights, often as views.
#   Save something else, or empty the storage.
# - Stage 3 sends $\frac{3(n-1)}{n}P$ elements in a step, half as much again as the other stages. Prefetching
#   hides a gather behind computing that takes at least as long; a larger batch computes longer.
# - Master weights, mean gradients and optimizer state stay in the parameters' own dtype, and what travels
#   may be narrower.
#
# **Where this is used:** as [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
# in torch, as stage 3 of [DeepSpeed](https://deepspeed.readthedocs.io/en/stable/zero3.html), and on TPUs by
# annotating arrays, as the [JAX scaling book](https://jax-ml.github.io/scaling-book/training/) shows.
#
# ### Check yourself
#
# <details><summary>You accumulate the gradients of four micro-batches before each step of the optimizer. How many times P does a rank send with stage 3, and with data parallelism?</summary>
#
# Stage 3 gathers twice and reduce-scatters once for each micro-batch: 12 (n−1)/n P. Data parallelism reduces
# once: 2 (n−1)/n P. You can keep whole gradients and reduce them at the end, or keep the weights gathered
# between the micro-batches. Both cost memory, which is what you wanted to save.
# </details>
#
# <details><summary>Why is the weight of a small norm layer not cut?</summary>
#
# It could be. But a gather of a few hundred bytes costs its latency and saves next to nothing: small
# parameters are replicated, or gathered together with others of their layer.
# </details>
#
# <details><summary>A colleague gathers one unit for the whole model instead of one for each layer. Is the result right? What is lost?</summary>
#
# It is right. But then all weights are there at once during forward and backward, when memory is needed
# most: no better than stage 2. Between the steps the weights are cut, but nothing else needs the room then.
# </details>
#
# **Next:** [25 · Pipeline parallelism](25_pipeline.ipynb). Weights, gradients and optimizer state are cut now, but
# each rank still computes every layer; a pipeline gives each rank some of the layers.
