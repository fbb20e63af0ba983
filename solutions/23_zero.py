# %% [markdown]
# # 23 · ZeRO
#
# Chapter [16](16_scale_math.ipynb) counted 16 bytes of training state for each parameter, and 12 of
# them belong to the optimizer. For a model of 7 billion parameters these 12 bytes add up to 84 GB: an
# 80 GB GPU cannot even hold them. And with data parallelism on 64 GPUs there are 64 copies, all with the
# same numbers. Does each rank need its own?
#
# **You will learn** how ZeRO removes such copies in three stages, what each stage sends, and why the
# first two send no more than data parallelism. You will write the first one: an AdamW whose state is cut
# into shards.
#
# **You need** chapters [07](07_all_reduce.ipynb) (an all-reduce is a reduce-scatter and an all-gather),
# [15](15_data_parallel.ipynb) and [16](16_scale_math.ipynb).
#
# **Time:** 2 hours, and 1 exercise, which is worth 3 points.

# %%
import time

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What an optimizer keeps
#
# Adam keeps two numbers for each weight: the **momentum** $m$, a running mean of its gradients, and the
# **variance** $v$, a running mean of their squares. The step divides one by the root of the other.
# [AdamW](https://arxiv.org/abs/1711.05101) also makes the weight itself a little smaller in each step,
# which is called *weight decay*. Here is one step for a tensor of weights; `t` is the number of the step,
# counted from 1.

# %%
def adamw_update(weight, gradient, m, v, t, lr, betas, eps, weight_decay):
    """One step of AdamW, in place: weight, m and v change. All have one shape."""
    beta1, beta2 = betas
    weight *= 1 - lr * weight_decay
    m += (1 - beta1) * (gradient - m)
    v += (1 - beta2) * (gradient * gradient - v)
    # the running means begin at zero; these divisions correct that
    root = (v / (1 - beta2**t)).sqrt() + eps
    weight -= lr * (m / (1 - beta1**t)) / root


OPTIONS = {"lr": 0.02, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01}

torch.manual_seed(0)
theirs = nn.Parameter(torch.randn(1000))
ours, m, v = theirs.detach().clone(), torch.zeros(1000), torch.zeros(1000)
optimizer = torch.optim.AdamW([theirs], **OPTIONS)
for t in range(1, 6):
    theirs.grad = torch.randn(1000)
    optimizer.step()
    adamw_update(ours, theirs.grad, m, v, t, **OPTIONS)
print("like torch.optim.AdamW:", torch.allclose(ours, theirs, atol=1e-6))

# %% [markdown]
# Look at the operations. Each element of the new weight depends on the same element of the old weight,
# of the gradient, of $m$ and of $v$, and on no others. So the elements can be divided among ranks in any
# way, even with a cut in the middle of a matrix.
#
# **Predict:** with a tiny `eps`, what happens to the weights if all gradients are four times too large,
# because they were summed over 4 ranks and not averaged?
#
# <details><summary>They move four times as far in each step</summary>
#
# No: that is what SGD would do. Adam divides by the size of the gradients.
# </details>
#
# <details><summary>They move as far as before</summary>
#
# Yes: $m$ gets four times as large, and so does the root of $v$. In the quotient the factor cancels.
# </details>
#
# <details><summary>They move a quarter as far: <i>v</i> holds squares</summary>
#
# No: $v$ does get sixteen times as large, but the step divides by its root.
# </details>

# %%
for eps in (1e-8, 0.1):
    moved = []
    for factor in (1, 4):
        weight, m, v = torch.zeros(1000), torch.zeros(1000), torch.zeros(1000)
        torch.manual_seed(1)
        for t in range(1, 6):
            adamw_update(weight, factor * torch.randn(1000), m, v, t, **OPTIONS | {"eps": eps})
        moved.append(weight)
    print(f"eps = {eps:g}: the same weights to 1e-6: {torch.allclose(*moved, atol=1e-6)}")

# %% [markdown]
# With a small `eps` the factor cancels. Only `eps` notices how large a gradient is. That is convenient in
# training and treacherous in testing, because a missing division by $n$ does not show. So the grader uses a
# large `eps`.
#
# ## The same numbers everywhere
#
# This is AdamW for data parallelism as you know it: an all-reduce averages the gradients, and then every
# rank updates every weight.

# %%
class ReplicatedAdamW:
    """AdamW on the mean gradients; every rank keeps the state of all parameters."""

    def __init__(self, params, **options):
        self.params, self.options, self.t = list(params), options, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        self.t += 1
        for p, m, v in zip(self.params, self.m, self.v):
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            adamw_update(p, p.grad, m, v, self.t, **self.options)

    def zero_grad(self):
        for p in self.params:
            p.grad.zero_()


# %% [markdown]
# We use it to train the network of chapter 15, which tells two spirals apart. `HeldStorages` is the
# instrument that the grader measures with: it adds up the memory of all tensors that the optimizer has
# made or used and that are still alive. Here it leaves out the parameters and their gradients, so what
# remains is the optimizer's own.

# %%
from grader.instruments import HeldStorages


def spirals(count=256):
    """Points on two spirals, and which one each is on."""
    generator = torch.Generator().manual_seed(1)
    radius = 0.2 + 0.8 * torch.rand(count, generator=generator)
    which = torch.arange(count) % 2
    angle = torch.pi * (2 * radius + which)
    points = 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.03 * torch.randn(count, 2, generator=generator), which


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


def training(make, data=None, steps=40):
    """Train on this rank's part of the data; return losses, bytes of state, and m if there is one."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = network()
    storages = HeldStorages(lambda: [t for p in model.parameters() for t in (p, p.grad) if t is not None])
    with storages:
        optimizer = make(model.parameters(), **OPTIONS)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        with storages:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    storages.settle(0)  # gloo's thread lets go of the last tensors a moment later
    return torch.tensor(losses), storages.nbytes, getattr(optimizer, "m", None)


data = spirals()
P = sum(p.numel() for p in network().parameters())
replicated = run(training, 4, ReplicatedAdamW, data, seconds=60)
print(f"{P} parameters")
for r, (_, nbytes, momentum) in enumerate(replicated):
    same = all(torch.equal(a, b) for a, b in zip(momentum, replicated[0][2]))
    print(f"rank {r} holds {nbytes:6} bytes of state, {nbytes / P:.2f} a parameter; m as on rank 0: {same}")

# %% [markdown]
# That is 8 bytes a parameter, for momentum and variance in float32. (Mixed precision adds a float32 copy of
# each weight; hence the 12.) And all four ranks hold the same bits: the copies start equal, and are updated
# with the same mean gradients. Three of the four are redundant.
#
# ## Three stages
#
# The Zero Redundancy Optimizer, **ZeRO**
# ([Rajbhandari and others 2020](https://arxiv.org/abs/1910.02054)), removes the copies. Lay all
# parameters end to end in one row, and cut the row into $n$ equal **shards**; rank $r$ is responsible for
# shard $r$. In three stages, it keeps less and less of the other shards:
#
# ![Four ways to keep the state of four ranks, each drawn as three rows, for weights, gradients and
# optimizer state, of four shards. Without ZeRO every rank has all shards of all three. With ZeRO-1 rank r
# has only shard r of the optimizer state. With ZeRO-2 also only shard r of the gradients. With ZeRO-3
# only shard r of all three.](../imgs/zero_shards.png)
#
# - **ZeRO-1** cuts the optimizer's state. A rank updates the weights of its shard, for which it needs only
#   the mean gradients of that shard. Then every rank needs the new weights of all the others.
# - **ZeRO-2** also cuts the gradients. As soon as backward has filled a bucket of gradients, the bucket is
#   reduced to the rank that keeps that shard, and the others free it.
# - **ZeRO-3** also cuts the weights. They are gathered layer by layer, just before they are needed,
#   and freed again.
#
# The three rows of a rank are not equally large: in mixed precision they are 2, 2 and 12 bytes for each
# parameter, so the first stage removes the most. Chapter 16 draws them to scale.
#
# ## What does it cost?
#
# | | gradients | weights |
# |---|---|---|
# | data parallelism | all-reduce | |
# | ZeRO-1, ZeRO-2 | reduce-scatter | all-gather, after the update |
# | ZeRO-3 | reduce-scatter | all-gather before forward, and again before backward |
#
# **Predict:** the gradients take $S$ bytes, and so do the weights. How many bytes does one of 8 ranks send in
# a step of each of the three kinds?
#
# <details><summary>1.75 S, 3.5 S and 5.25 S</summary>
#
# No: a reduce-scatter and an all-gather are each *half* of an all-reduce, $\frac{7}{8} S$ and not
# $\frac{14}{8} S$.
# </details>
#
# <details><summary>1.75 S, 1.75 S and 2.625 S</summary>
#
# Yes: each reduce-scatter and each all-gather sends $\frac{7}{8} S$. The first two kinds have two of
# them, and ZeRO-3 has three.
# </details>
#
# <details><summary>1.75 S, 0.875 S and 0.875 S</summary>
#
# No: the gradients are only reduce-scattered, which saves half of it. But then the weights have to be
# gathered.
# </details>

# %%
def data_parallel(row):
    dist.all_reduce(row)


def zero_1_or_2(row):
    shard = row.new_empty(len(row) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, row)
    dist.all_gather_into_tensor(row, shard)


def zero_3(row):
    shard = row.new_empty(len(row) // dist.get_world_size())
    dist.all_gather_into_tensor(row, shard)  # weights, for forward
    dist.all_gather_into_tensor(row, shard)  # and for backward
    dist.reduce_scatter_tensor(shard, row)


row = torch.ones(8 * 1000)
for step in (data_parallel, zero_1_or_2, zero_3):
    sent = simulate(step, 8, row, record=True).trace.traffic.max_sent
    print(f"{step.__name__:14} {sent:6} bytes by one rank, {sent / row.nbytes:.3f} S")

# %% [markdown]
# These are the bytes of all messages that the busiest of the simulated ranks sent. Among ranks that send
# point to point, an all-reduce can do no better than a reduce-scatter and an all-gather. So ZeRO-1 and
# ZeRO-2 send what data parallelism sends: they only make the update between the two halves, instead of after
# both. ZeRO-3 gathers once more, which makes it one and a half times as much, as the paper says. (That is for
# gradients and weights of one dtype. If gradients are reduced in float32 and weights gathered in bfloat16,
# ZeRO-1 sends 6 bytes where the all-reduce sends 8.)
#
# Equal bytes need not take equal time. An all-reduce of gradients can hide behind backward (chapter 15),
# while the all-gather of ZeRO-1 comes after the update. It can hide behind the next forward pass, if the
# program is written that way; ours will not be. And if a step adds up the gradients of several
# micro-batches, ZeRO-2 has to reduce those of each micro-batch, where data parallelism and ZeRO-1 send once.
#
# ## Where the cuts fall
#
# ![A row of ten elements of three parameters, of 5, 4 and 1 elements, cut into four shards of three, with
# two elements of padding at its end. The shard of rank 1 holds the last two elements of parameter 0 and
# the first of parameter 1: cuts need not fall between parameters.](../imgs/zero_row.png)
#
# Equal shards need a row whose length is divisible by $n$. So the row is padded: a shard has $\lceil P/n \rceil$
# elements, and the last ones of the row may be padding. The cuts take no notice of parameters: here rank 1
# updates the end of one and the beginning of the next.
#
# **Predict:** with 13 elements on 4 ranks, the last rank has three elements of padding. And where is the
# padding with 5 elements on 4 ranks?
#
# <details><summary>One element on each of ranks 1, 2 and 3</summary>
#
# No: shards are cut from the row one after the other, and what is missing is missing at its end.
# </details>
#
# <details><summary>Three elements on rank 3</summary>
#
# No: a shard has two elements here, so three do not fit into the last one.
# </details>
#
# <details><summary>One element on rank 2, two on rank 3</summary>
#
# Yes: the row has 8 places, and its last three are padding. Rank 3 has nothing else.
# </details>

# %%
n = 4
for length in (13, 5):
    size = -(-length // n)
    row = torch.cat([torch.arange(length), torch.full((n * size - length,), -1)])
    print(f"{length:2} elements:", *(shard.tolist() for shard in row.split(size)))

# %% [markdown]
# (−1 is padding.) A rank with nothing to update still takes part in both collectives.
#
# ## No gradient, or a gradient of zero
#
# A parameter need not have a gradient in every step. If none of a rank's tokens went to some expert, `grad` is
# `None` for it there. Is that the same as zero? Here AdamW makes a step with a gradient of 1, and then a second one.

# %%
for second in (None, torch.zeros(1)):
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([p], lr=0.1, weight_decay=0.1)
    for p.grad in (torch.ones(1), second):
        optimizer.step()
    steps = int(optimizer.state[p]["step"])
    print(f"second gradient {second}: the weight is {p.item():.4f}, and {steps} steps are counted")

# %% [markdown]
# With `None`, torch skips the parameter. With a zero, the momentum of earlier steps still moves it, the weight
# decays, and the step counts in the bias correction. So a mean gradient has to be told from a missing one. If *some*
# ranks have a gradient, there is a mean, to which the others contribute zeros. If *no* rank has one, the parameter
# must be skipped. A rank sees only its own gradients, and a row that is filled with zeros no longer tells the two
# cases apart. What would the ranks have to tell one another, and how much data is that?
#
# ## Exercise: ShardedAdamW
#
# Write ZeRO-1. `params` is an iterable of parameters, like that of an optimizer in torch. Ranks start with
# equal weights. Before `step()`, each `p.grad` holds the rank's **own** gradient; after it, the weights on
# all ranks are those that `torch.optim.AdamW` would make with the **mean** gradients. `zero_grad()` clears
# the gradients.
#
# - Between calls the optimizer holds at most $2 \lceil P/n \rceil$ elements on each rank, plus 64 for each
#   parameter, for counters and padding. $P$ counts the elements of the parameters that are trained.
# - In a step a rank sends at most $2(n-1) \lceil P/n \rceil$ elements, plus 64 for each parameter.
#   `dist.reduce_scatter*`, `dist.all_gather*` and `dist.broadcast` are allowed. Each is charged what
#   the best point-to-point algorithm would send. (In new versions of torch, `reduce_scatter_tensor` and
#   `all_gather_into_tensor` are called `reduce_scatter_single` and `all_gather_single`. Both names work here.)
# - A weight that is **tied** may be in `params` twice and counts once. A **frozen** one, with
#   `requires_grad` False, is left alone. All others have the same dtype; their shapes are arbitrary.
# - A gradient that is `None` on some ranks counts as zero there. If it is `None` on **all** ranks, the parameter is
#   skipped: its weights, its state and its bias correction stay as they are.
#
# You may use `adamw_update`, or let `torch.optim.AdamW` train your shard. (A copy of the shard's weights that you
# keep between calls also counts.) Begin with one parameter, whose length is divisible by $n$.

# %%
class ShardedAdamW:
    """AdamW, of which every rank keeps the state of one shard."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        ### BEGIN SOLUTION
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.options = lr, betas, eps, weight_decay
        n, rank = dist.get_world_size(), dist.get_rank()
        self.size = -(-sum(p.numel() for p in self.params) // n)
        self.first = rank * self.size  # of this rank's shard, in the row
        self.m, self.v = self.params[0].detach().new_zeros(2, self.size)
        self.steps = [0] * len(self.params)
        ### END SOLUTION

    @torch.no_grad()
    def step(self):
        ### BEGIN SOLUTION
        n = dist.get_world_size()
        mine = torch.tensor([p.grad is not None for p in self.params]).to(torch.uint8)
        flags = [torch.empty_like(mine) for _ in range(n)]
        dist.all_gather(flags, mine)
        exists = torch.stack(flags).any(0).tolist()

        gradients, weights = self.m.new_zeros(2, n * self.size)
        places, start = [], 0
        for p in self.params:
            place = slice(start, start := start + p.numel())
            places.append(place)
            weights[place] = p.flatten()
            if p.grad is not None:
                gradients[place] = p.grad.flatten()
        mean = torch.empty_like(self.m)
        dist.reduce_scatter_tensor(mean, gradients)
        mean /= n

        shard = weights[self.first : self.first + self.size].clone()
        for i, place in enumerate(places):
            if exists[i]:
                self.steps[i] += 1
                first, last = (
                    min(max(edge - self.first, 0), self.size) for edge in (place.start, place.stop)
                )
                parts = [row[first:last] for row in (shard, mean, self.m, self.v)]
                adamw_update(*parts, self.steps[i], *self.options)

        dist.all_gather_into_tensor(weights, shard)
        for p, place in zip(self.params, places):
            p.copy_(weights[place].view_as(p))
        ### END SOLUTION

    def zero_grad(self):
        ### BEGIN SOLUTION
        for p in self.params:
            p.grad = None
        ### END SOLUTION


zero_works = check(ShardedAdamW)
zero_works

# %% [markdown]
# ## One process, four ranks
#
# Here is the same training as above, with your optimizer on four ranks, and for comparison in one process that
# sees all the data and uses `torch.optim.AdamW`.
#
# **Predict:** how far do the losses agree?
#
# <details><summary>To the last bit: cutting the state changes no number</summary>
#
# No: the cut changes nothing, but the gradients of four parts are added up in another order, and
# rounded differently.
# </details>
#
# <details><summary>To about six digits</summary>
#
# Yes: the sums of gradients are rounded differently, in the eighth digit or so.
# </details>
#
# <details><summary>To two or three digits: errors grow over 40 steps</summary>
#
# No: the two programs differ by one rounding of the gradients in each step, and 40 such steps do not
# get that far.
# </details>

# %%
def alone(steps=40):
    """The losses of one process that sees all of the data."""
    (x, y), model, losses = data, network(), []
    optimizer = torch.optim.AdamW(model.parameters(), **OPTIONS)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


if zero_works:
    single = alone()
    sharded = run(training, 4, ShardedAdamW, data, seconds=60)
    mean = torch.stack([losses for losses, *_ in sharded]).mean(0)
    apart = (single - mean).abs().max().item()
    print("the losses agree to three digits:", apart < 1e-3)
    print("to six digits:                   ", apart < 1e-6)
    print("to the last bit:                 ", torch.equal(single, mean))
    print("the loss has fallen to a tenth:  ", bool(mean[-1] < mean[0] / 10))
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot(single, lw=5, alpha=0.4, label="one process")
    axes.plot(mean, ls="--", color="black", label="four ranks, sharded state")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    plt.show()

# %% [markdown]
# The two programs add up the gradients in different orders. (With our answer, the losses agree to about 10⁻⁷.)
# Sharding the state has nothing to do with it: each element is updated by the same operations as before.
#
# ## What each rank holds now
#
# How many bytes of state does each rank hold for each parameter, on 1, 2, 4 and 8 ranks?

# %%
def state_bytes(make, data=None):
    return training(make, data, steps=2)[1]


if zero_works:
    for n in (1, 2, 4, 8):
        full = run(state_bytes, n, ReplicatedAdamW, data, seconds=60)
        cut = run(state_bytes, n, ShardedAdamW, data, seconds=60)
        print(
            f"n = {n}: {full[0] / P:.2f} bytes a parameter when replicated, {cut[0] / P:.2f} when sharded;"
            f" as much on all ranks: {len(set(cut)) == 1}"
        )

# %% [markdown]
# That is what an optimizer holds *between* steps. And *in* a step? `PeakStorages` notes the most bytes that are held at
# any moment, here with eight matrices of one size.
#
# Which of the two optimizers needs more room, and does that change with the number of ranks?

# %% tags=["nbval-ignore-output"]
from grader.instruments import PeakStorages


def most_in_a_step(make):
    parameters = [nn.Parameter(torch.ones(64, 64)) for _ in range(8)]
    storages = PeakStorages(lambda: [t for p in parameters for t in (p, p.grad) if t is not None])
    with storages:
        optimizer = make(parameters, **OPTIONS)
    for p in parameters:
        p.grad = torch.ones_like(p)
    with storages:
        optimizer.step()
    return storages.most / sum(p.numel() for p in parameters)


if zero_works:
    for n in (1, 2, 4, 8):
        full, cut = (max(run(most_in_a_step, n, make)) for make in (ReplicatedAdamW, ShardedAdamW))
        print(f"n = {n}: at most {full:.1f} bytes a parameter when replicated, {cut:.1f} when sharded")

# %% tags=["claim"]
assert cut > full, "even on 8 ranks it then needs more room than the optimizer that it replaces"

# %% [markdown]
# If your step is like ours, it makes two whole rows, for gradients and for weights: 8 bytes a parameter, as many as the
# whole state. So at that moment nothing is saved: even on 8 ranks it then needs more room than the optimizer that it
# replaces. Megatron-LM does without the rows: its weights and gradients are views of flat buffers, which the
# collectives read and fill in place.
#
# ## Compared with torch's own
#
# Torch's own ZeRO-1 is
# [`ZeroRedundancyOptimizer`](https://docs.pytorch.org/docs/stable/distributed.optim.html). It divides
# differently: "each parameter belongs to a single rank and is not divided among ranks". After the update,
# each rank broadcasts the parameters that it is responsible for. It expects gradients that are averaged
# already, so it comes after an all-reduce, such as that of `DistributedDataParallel`.
#
# This network has matrices of 64 × 64, 64 × 2 and 2 × 64, and three biases.
#
# **Predict:** how evenly does torch share them among four ranks, and does it send more or less than yours?
#
# <details><summary>Evenly, and it sends more</summary>
#
# No: a parameter is not divided, and one of them has 4096 of the 4482 elements.
# </details>
#
# <details><summary>One rank holds nearly all, and it sends more</summary>
#
# Yes: the largest matrix stays in one piece, and an all-reduce brings every rank gradients that it does
# not need.
# </details>
#
# <details><summary>One rank holds nearly all, and it sends less</summary>
#
# No: one broadcast of the weights is cheap, but before it comes an all-reduce of *all* gradients.
# </details>

# %%
class TorchZero:
    """torch's ZeroRedundancyOptimizer, after an all-reduce of the gradients."""

    def __init__(self, params, **options):
        from torch.distributed.optim import ZeroRedundancyOptimizer

        self.params = list(params)
        self.inner = ZeroRedundancyOptimizer(self.params, torch.optim.AdamW, **options)

    def step(self):
        for p in self.params:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        self.inner.step()

    def zero_grad(self):
        self.inner.zero_grad()


if zero_works:
    torchs = run(training, 4, TorchZero, data, seconds=120)
    apart = max(float((a - b).abs().max()) for (a, *_), (b, *_) in zip(sharded, torchs))
    print("the same losses to six digits on every rank:", apart < 1e-6)
    for name, ran in (("yours", sharded), ("torch's", torchs)):
        held = [nbytes for _, nbytes, _ in ran]
        sent = [round(number / 40 / P, 2) for number in ran.trace.sent_elements]
        print(f"{name:8} bytes held by rank: {held}; elements sent in a step, in P: {sent}")

# %% [markdown]
# The rank that has the largest matrix holds almost all of the state. In a large model there are many matrices
# of similar size, and whole parameters can be shared out more evenly. Torch's ranks also send more: the
# all-reduce brings the mean of *all* gradients to *every* rank, which needs only those of its own parameters,
# and then the broadcasts follow. (A broadcast counts here as one copy at its root; the ranks that pass it on
# are not counted.)
#
# How long does a step take on four ranks of this computer?

# %% tags=["nbval-ignore-output"]
def seconds_of_a_step(make, data=None, steps=30):
    model, (x, y) = network(), data
    optimizer = make(model.parameters(), **OPTIONS)
    taken = []
    for _ in range(steps):
        nn.functional.cross_entropy(model(x), y).backward()
        dist.barrier()
        started = time.perf_counter()
        optimizer.step()
        taken.append(time.perf_counter() - started)
        optimizer.zero_grad()
    return sorted(taken)[steps // 2]


if zero_works:
    times = {
        name: max(run(seconds_of_a_step, 4, make, data, seconds=120))
        for name, make in (("replicated", ReplicatedAdamW), ("yours", ShardedAdamW), ("torch's", TorchZero))
    }
    for name, seconds in times.items():
        print(f"{name:10} {seconds / times['replicated']:.2f} of the replicated step")

# %% [markdown]
# The ratios vary from run to run, and say little about a cluster. But count the calls: if your step is like
# ours, it makes three, however many parameters there are. The other two call an all-reduce for each
# parameter, and each call waits for all ranks; torch's then also broadcasts. (The grader records every
# call, which costs a little each time.)
#
# Here is a step of yours on a timeline, with a million weights.
#
# Which parts do you see, in which order, and in which of them does a rank communicate?

# %% tags=["nbval-ignore-output"]
def one_step(make):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(1000, 1000))
    optimizer = make([weight], **OPTIONS)
    for step in range(2):  # the first one warms up
        weight.grad = torch.randn(1000, 1000)
        dist.barrier()
        if step:
            mark("step")
        optimizer.step()
        if step:
            mark("done")


if zero_works:
    stepped = run(one_step, 2, ShardedAdamW, seconds=60)
    display(timeline(stepped, since="step", until="done"))

# %% [markdown]
# If your step is like ours, you see a short all-gather of flags, then the reduce-scatter, then the update,
# in which no rank communicates, and the all-gather of the new weights. The other grey stretches mostly
# copy gradients and weights into the row and out of it. Sharding also saves computing: a rank updates $1/n$ of
# the weights.
#
# ## Summary
#
# In data parallelism all ranks hold the same 12 bytes of optimizer state for each parameter, and none
# needs more than its share of them: on 64 GPUs, 12 bytes become 0.19.
#
# - An optimizer that works element by element can be cut anywhere: lay the parameters end to end, pad the
#   row to $n \lceil P/n \rceil$ elements, and give each rank a shard.
# - ZeRO-1: reduce-scatter the gradients, update your shard, all-gather the weights. Together the two
#   collectives are an all-reduce, so a rank keeps less between steps and sends no more. ZeRO-2 also frees
#   gradients on the way; ZeRO-3 also cuts the weights, and sends one and a half times as much.
# - Test an Adam with a large `eps`, or a wrong factor in the gradients stays hidden.
# - Mind parameters that are skipped, tied or frozen. All ranks have to agree on whether one is skipped.
#
# **Where this is used:** in [DeepSpeed](https://deepspeed.readthedocs.io/en/stable/zero3.html), in torch's
# `ZeroRedundancyOptimizer`, and as the [distributed
# optimizer](https://docs.nvidia.com/megatron-core/developer-guide/0.19.0/apidocs/core/core.optimizer.distrib_optimizer.html)
# of Megatron-LM.
#
# ### Check yourself
#
# <details><summary>With ZeRO-1 on 8 ranks in mixed precision, how many bytes does a rank keep for each parameter? And on 1024?</summary>
#
# 2 + 2 + 12/8 = 5.5, and 2 + 2 + 12/1024 = 4.01. Weights and gradients are not cut, so 4 bytes remain
# however many ranks there are.
# </details>
#
# <details><summary>A colleague clips gradients: if the norm of all gradients is above 1, they are divided by it. What has to change with sharded gradients?</summary>
#
# No rank has all the mean gradients any more. Each adds up the squares of its own shard; an all-reduce of
# that one number gives the sum over all shards, and its root is the norm.
# </details>
#
# <details><summary>Why is a parameter with gradient zero not the same as one that is skipped?</summary>
#
# With a gradient of zero, Adam still moves the weight by what is left of its momentum, decay makes it
# smaller, and the step counts for its bias correction. A parameter that is skipped stays as it is.
# </details>
#
# **Next:** [24 · FSDP](24_fsdp.ipynb), which also cuts the weights.
