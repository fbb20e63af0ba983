# %% [markdown]
# # 15 · Data parallelism
#
# If one GPU needs a minute for a batch, 64 GPUs could finish it in about a second, each working on a
# part. But then there are 64 different gradients, and the next step cannot begin until all ranks have
# the same one. How much does that cost on top of the second, and can the cost be hidden?
#
# **You will learn** how several ranks train one model: what they split, what they must exchange and
# when, and how `DistributedDataParallel` hides that exchange behind the computation. You will write
# one yourself.
#
# **You need** chapters [02](02_broadcast.ipynb), [07](07_all_reduce.ipynb),
# [11](11_ring_all_reduce.ipynb) and [13](13_cost_models.ipynb).
#
# **Time:** 2 hours, and 4 exercises.

# %%
import statistics
import time

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What is split
#
# A batch for a language model consists of samples, and each sample of tokens. You can cut along
# either.
#
# ![One batch of four samples of eight tokens, cut in two ways. Left, by sample: rank r has all tokens
# of sample r. Right, along the sequence: rank r has two tokens of every sample.](../imgs/batch_splits.png)
#
# This chapter cuts by **sample**. That is *data parallelism*: every rank has the whole model and its
# own part of the batch. Cutting along the sequence is meant for batches of few but very long samples.
# The tokens of one sample are then spread over several ranks, and layers that mix tokens have to
# communicate in the middle of the forward pass.
#
# Take a loss that is a *mean* over samples, $\frac{1}{B}\sum_i \ell_i$. Four ranks have $B/4$ samples
# each, and each computes the gradient of the mean over its own samples.
#
# **Predict:** how do you combine the four gradients into that of the whole batch?
#
# <details><summary>Take their sum</summary>
#
# No: each part's gradient is divided by $B/4$ and not by $B$, so the sum is four times too large.
# </details>
#
# <details><summary>Take their mean</summary>
#
# Yes: $\frac{1}{B}$ is a quarter of $\frac{1}{B/4}$.
# </details>
#
# <details><summary>Weight them by their losses</summary>
#
# No: every sample counts the same, however large its loss.
# </details>

# %%
torch.manual_seed(0)
model = nn.Linear(3, 1)
inputs, targets = torch.randn(8, 3), torch.randn(8, 1)


def gradient(x, y):
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    return model.weight.grad.clone()


whole = gradient(inputs, targets)
parts = [gradient(x, y) for x, y in zip(inputs.chunk(4), targets.chunk(4))]
print("the sum is right: ", torch.allclose(sum(parts), whole))
print("the mean is right:", torch.allclose(sum(parts) / 4, whole))

# %% [markdown]
# The **mean**. The sum is four times too large; with plain SGD that acts like a learning rate four
# times as high.
#
# The mean is right because the parts are equally large. If 8 samples are split into 5 and 3, it is not:

# %%
sizes = (5, 3)
uneven = [gradient(x, y) for x, y in zip(inputs.split(sizes), targets.split(sizes))]
weighted = sum(size * part for size, part in zip(sizes, uneven)) / sum(sizes)
print("the mean is right:         ", torch.allclose(sum(uneven) / 2, whole))
print("the weighted mean is right:", torch.allclose(weighted, whole))

# %% [markdown]
# So give all ranks parts of the same size. Torch's
# [`DistributedSampler`](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
# repeats or drops a few samples to make that possible.
#
# For a language model that is not enough. Its loss is a mean over *tokens*, and padding does not count, so
# ranks with the same number of samples may have 5 and 3 tokens that do. Then each rank has to divide the *sum*
# of its losses by the tokens of **all** ranks, and multiply by $n$, because the mean over ranks divides again.
# In 2024 a widely used library was found to do this neither across ranks nor across accumulated batches
# ([its issue](https://github.com/huggingface/transformers/issues/34242)).
#
# ## Through one rank: the parameter server
#
# The simplest way makes one rank the server. The others send it their gradients; it takes the mean
# and sends it back. (In the full design of
# [Li et al. 2014](https://www.usenix.org/conference/osdi14/technical-program/presentation/li_mu) there
# are several servers, and each also keeps a part of the weights.)
#
# ## Exercise: parameter_server_step
#
# `grads` is a list of tensors, with the same shapes on every rank: the means over this rank's own `samples`
# samples. Afterwards each tensor holds the mean over **all samples** of all ranks. A rank may have none: then
# `samples` is 0 and its gradients are zeros, and it takes part all the same. Work in place: write into the
# tensors themselves, since putting new ones into the list would leave the gradients as they were. Rank 0 is the
# server: every rank talks to rank 0 and to no other. Use at most $2(n-1)$ messages for each gradient, and as many
# once for the numbers of samples.

# %%
def parameter_server_step(grads: list[torch.Tensor], samples: int) -> None:
    """Every gradient becomes its mean over all samples, through rank 0."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    count = torch.tensor([float(samples)])
    for grad in grads:
        grad *= samples
    for tensor in [count, *grads]:
        if rank == 0:
            heard = torch.empty_like(tensor)
            for src in range(1, n):
                dist.recv(heard, src)
                tensor += heard
            for dst in range(1, n):
                dist.send(tensor, dst)
        else:
            dist.send(tensor, 0)
            dist.recv(tensor, 0)
    for grad in grads:
        grad /= count.item()
    ### END SOLUTION


server_works = check(parameter_server_step)
server_works

# %% [markdown]
# ### What is wrong with it
#
# ![Left, a parameter server: rank 0 exchanges messages with each of three other ranks; it takes in 3 S
# and gives out 3 S. Right, a ring: each rank sends to the next one, and takes in and gives out twice three
# quarters of S.](../imgs/server_and_ring.png)
#
# Nothing, if you look at the *total*: both move $2(n-1)S$ bytes. But look at a single link.
#
# **Predict:** when you go from 4 ranks to 64, how much more does the server's link have to carry? And
# a link of the ring?
#
# <details><summary>21 times as much, and a third more</summary>
#
# Yes: 63 S after 3 S, and nearly 2 S after 1.5 S.
# </details>
#
# <details><summary>21 times as much, and 21 times as much</summary>
#
# No: the total grows like that in both, but a ring shares it out among ever more links.
# </details>
#
# <details><summary>21 times as much, and far less</summary>
#
# No: the ring's chunks are 16 times smaller, but there are 21 times as many of them.
# </details>

# %%
def ring_mean(grads):
    """The ring of chapter 11, on the gradients flattened into one tensor."""
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = torch.cat([grad.flatten() for grad in grads])
    chunks = flat.tensor_split(n)
    for step in range(2 * (n - 1)):
        combine = step < n - 1
        first = rank if combine else rank + 1
        out, into = (first - step % (n - 1)) % n, (first - step % (n - 1) - 1) % n
        heard = torch.empty_like(chunks[into])
        request = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(heard, (rank - 1) % n)
        request.wait()
        chunks[into].copy_(chunks[into] + heard if combine else heard)
    for grad, mean in zip(grads, flat.split([g.numel() for g in grads])):
        grad.copy_(mean.view_as(grad) / n)


def server_mean(grads):
    """The same number of samples on every rank."""
    parameter_server_step(grads, 1)


S = 64_000 * 4
if server_works:
    for n in (4, 16, 64):
        sent = []
        for step in (server_mean, ring_mean):
            trace = simulate(step, n, [torch.ones(S // 4)], record=True).trace
            sent.append(trace.traffic.max_sent / S)
        print(f"{n:2} ranks: the busiest rank sends {sent[0]:5.2f} S with a server, {sent[1]:.2f} S in a ring")

# %% [markdown]
# In each direction the server's link carries $(n-1)S$, and a link of the ring less than $2S$, however
# many ranks there are. The server serves its ranks one after the other, and those at the end of the queue
# wait for everyone ahead of them.
#
# How long does that take? Give every link 10 GB/s and 10 µs, and take the gradients of a small model:
# 100 MB.

# %%
if server_works:
    for n in (2, 4, 8, 16, 32, 64):
        seconds = [
            # a thousandth of the tensor on a link of a thousandth of the speed: the same seconds
            simulate(step, n, [torch.ones(25_000)], alpha=10e-6, beta=1e3 / 10e9).seconds
            for step in (server_mean, ring_mean)
        ]
        print(f"{n:2} ranks: {1e3 * seconds[0]:7.1f} ms through a server, {1e3 * seconds[1]:5.1f} ms in a ring")

# %% [markdown]
# In the ring all ranks send and receive at the same time. Through this server one message travels at a
# time, so even two ranks take twice as long. A library's `all_reduce` picks a ring, a tree or something
# better for you, so from here on we use it.
#
# ## Exercise: average_gradients
#
# After `backward`, replace every `p.grad` of `module.parameters()` by its mean over all ranks.
# `dist.all_reduce` is allowed.
#
# There is one difficulty. If a parameter took no part in a rank's forward pass, its `p.grad` is `None`
# on that rank. It counts as zero there, and **every** rank gets the mean, including the one that had
# `None`. A rank may even have no gradient at all. A gradient that is `None` on *all* ranks stays `None`.
# But a rank cannot see what the others have, and a collective must be called by all ranks or by none.

# %%
def average_gradients(module: nn.Module) -> None:
    """Every p.grad becomes its mean over ranks."""
    ### BEGIN SOLUTION
    parameters = list(module.parameters())
    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    dist.all_reduce(there)
    for p, count in zip(parameters, there.tolist()):
        if count == 0:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    ### END SOLUTION


averaging_works = check(average_gradients)
averaging_works

# %% [markdown]
# ## It trains
#
# That is enough to train a model. The data are points on two spirals, which a small network has to
# tell apart.

# %%
def spirals(count=256):
    """Points on two spirals, and which one each is on."""
    generator = torch.Generator().manual_seed(1)
    radius = 0.2 + 0.8 * torch.rand(count, generator=generator)
    which = torch.arange(count) % 2
    angle = torch.pi * (2 * radius + which)
    points = 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.03 * torch.randn(count, 2, generator=generator), which


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


points, which = spirals()
figure, axes = plt.subplots(figsize=(3.2, 3.2))
for side, marker in ((0, "o"), (1, "^")):
    axes.scatter(*points[which == side].T, marker=marker, s=14, label=f"spiral {side}")
axes.legend(loc="upper right")
axes.set_aspect("equal")
plt.show()

# %% [markdown]
# One process sees all 256 points in every step. Four ranks see 64 each and average their gradients.
#
# **Predict:** how closely will the two loss curves agree?
#
# <details><summary>Roughly: they see different samples</summary>
#
# No: together the four ranks see the same 256 points in each step, and the mean of the four gradients is
# the same.
# </details>
#
# <details><summary>To a few digits: they round differently</summary>
#
# Yes: it is the same sum, but its terms are added in a different order.
# </details>
#
# <details><summary>To the last bit: it is the same sum</summary>
#
# No: it is the same on paper. In floating point the order of its terms matters.
# </details>

# %%
def losses_of(average, data=None, steps=60):
    """Train on this rank's part of the data; the loss over all of it, step by step."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = network(seed=0)  # the same weights on every rank
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        average(model)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / n)
    return losses


if averaging_works:
    alone = run(losses_of, 1, average_gradients, (points, which), seconds=60)[0]
    shared = run(losses_of, 4, average_gradients, (points, which), seconds=60)[0]
    print("largest difference below 0.001: ", max(abs(a - b) for a, b in zip(alone, shared)) < 1e-3)
    print("equal to the last bit:          ", alone == shared)
    print("the loss has fallen a hundredfold:", shared[-1] < shared[0] / 100)

# %%
if averaging_works:
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot(alone, lw=5, alpha=0.4, label="one process")
    axes.plot(shared, ls="--", color="black", label="four ranks, a quarter of the data each")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    plt.show()

# %% [markdown]
# On paper the two curves are one. (Small differences of rounding can grow as training goes on.) It is the
# same algorithm: **$n$ ranks with $B/n$ samples each train like one with $B$**, as long as no layer mixes
# the samples of a batch, as batch normalisation does, and nothing is drawn at random, as dropout's masks
# are: $n$ ranks do not draw the numbers that one rank would.
#
# Two things have to hold for that, and both are easy to lose:
#
# - All ranks start from **the same weights**. Above, each rank made them from the same seed.
#   `DistributedDataParallel` does not rely on that; it broadcasts rank 0's.
# - All ranks make **the same step**: they average before the optimizer runs, and their optimizers have
#   the same state.
#
# **Predict:** what happens if you forget the first, and each rank draws its own weights?
#
# <details><summary>The weights become equal, step by step</summary>
#
# No: the ranks average their <em>gradients</em>. All weights move alike, and stay as far apart as they
# were.
# </details>
#
# <details><summary>An error: the gradients do not match</summary>
#
# No: they have the same shapes, and that is all that an all-reduce needs.
# </details>
#
# <details><summary>The weights stay apart, without any error</summary>
#
# Yes: all of them take the same steps, from different places.
# </details>

# %%
def drift(same_seed, data=None):
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = network(seed=0 if same_seed else rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= n
        optimizer.step()
    return next(iter(model.parameters())).detach()


for same_seed in (True, False):
    weights = run(drift, 4, same_seed, (points, which), seconds=60)
    same = all(torch.equal(weights[0], weights[r]) for r in range(4))
    print(f"same start: {same_seed!s:5}   same weights after 20 steps: {same}")

# %% [markdown]
# There is no error and no crash, and the loss may even fall. But these are four different models, and
# the average that moves each of them is the gradient of none.
#
# ## When: not after backward, but during it
#
# So far we have computed first and communicated afterwards. But backward finishes the gradients of the
# *last* layer first, and they do not change any more. They could already be on their way while backward
# continues.
#
# ![Two time lines of one step. Above, all-reduces of four buckets begin when backward has ended. Below,
# each begins as soon as its layer's backward is done, so that only the last one is still to be waited
# for.](../imgs/buckets_and_backward.png)
#
# Here is a real timeline. `mark` puts a name into the record. First the plain way: when backward is
# over, one all-reduce for every gradient.

# %% tags=["nbval-ignore-output"]
def wide_network():
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(384, 384), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(384, 1))


def plain_step():
    model = wide_network()
    x = torch.randn(128, 384)
    for step in range(2):  # the first one warms up
        model.zero_grad()
        loss = model(x).square().mean()
        dist.barrier()
        if step:
            mark("backward")
        loss.backward()
        if step:
            mark("all-reduce")
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        if step:
            mark("done")


plain = run(plain_step, 2)
timeline(plain, since="backward", until="done")

# %% [markdown]
# Backward runs first, and then the ranks wait in 14 all-reduces, one after the other.
#
# Before we overlap the two, there are two questions.
#
# **Why not start one all-reduce for each gradient?** Each costs its latency, and many gradients are
# small: biases, layer norms. Chapter [13](13_cost_models.ipynb) has the formula.
#
# **Predict:** 200 gradients of 40 kB each, on 8 ranks with α = 20 µs and 10 GB/s. How much faster is one
# all-reduce for all of them than one for each?
#
# <details><summary>Not at all: the bytes are the same</summary>
#
# No: the bytes are, but each all-reduce has 14 latencies in a row, and next to those, 40 kB take little time.
# </details>
#
# <details><summary>200 times: one in place of 200</summary>
#
# No: the latencies fall to a 200th, but the bytes remain, and take most of the time that is left.
# </details>
#
# <details><summary>Some 34 times: the latencies go</summary>
#
# Yes: 199 times 14 latencies are saved, 56 of 57 ms.
# </details>

# %%
def ring_seconds(nbytes, n=8, alpha=20e-6, beta=1 / 10e9):
    steps = 2 * (n - 1)
    return steps * alpha + steps / n * nbytes * beta


print(f"200 all-reduces of 40 kB: {1e3 * 200 * ring_seconds(40e3):5.1f} ms")
print(f"one all-reduce of 8 MB:   {1e3 * ring_seconds(8e6):5.1f} ms")

# %% [markdown]
# **Why not one for all of them, then?** It could not begin before the *last* gradient is ready, so
# nothing would overlap. The compromise is a **bucket**: gradients that are ready at about the same time
# are put into one tensor and reduced together. (This is the design of torch's `DistributedDataParallel`,
# DDP for short, described by [Li et al. 2020](https://arxiv.org/abs/2006.15704).)
#
# The size of a bucket in torch's DDP is
# [`bucket_cap_mb`](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html),
# 25 by default. How many bytes is that?

# %%
def default_bucket():
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(nn.Linear(2, 2)).bucket_bytes_cap


nbytes = run(default_bucket, 1, seed=0)[0]
print(f"{nbytes:,} bytes; 25 · 2²⁰ are {25 * 2**20:,}; beside 25 · 10⁶ {nbytes / 25e6 - 1:.1%} more")

# %% [markdown]
# So its *mb* means MiB, $2^{20}$ bytes each.
#
# ## Exercise: assign_buckets
#
# `sizes` holds the parameters' sizes in bytes, in the order of the model. Return the buckets as lists
# of indices. Go through the parameters from the last to the first, since their gradients become ready
# in about that order. Start a new bucket when the next parameter would take the current one *over* the
# cap. A parameter larger than the cap gets a bucket of its own.

# %%
def assign_buckets(sizes: list[int], cap_bytes: int) -> list[list[int]]:
    """Which parameters are reduced together, the last ones first."""
    ### BEGIN SOLUTION
    buckets, filled = [], 0
    for index in reversed(range(len(sizes))):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return buckets
    ### END SOLUTION


buckets_work = check(assign_buckets)
buckets_work

# %% [markdown]
# ## How to tell that a gradient is ready
#
# You can register a *hook*, a function that autograd calls when it has put a parameter's gradient into
# `p.grad`:
# [`register_post_accumulate_grad_hook`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html).
#
# **Predict:** the first of two layers is used twice, before the last layer and after it. How often is the
# hook of its weight called?
#
# <details><summary>Twice: before the last layer's hook and after it</summary>
#
# No: the first of these gradients is only a part. The hook waits until both are added up.
# </details>
#
# <details><summary>Once: after the last layer's hook</summary>
#
# Yes: when both uses have been added up, and backward reaches the earlier use last.
# </details>
#
# <details><summary>Once: before the last layer's hook</summary>
#
# No: backward reaches the later use first, but the gradient is not complete then.
# </details>

# %%
small = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
for name, parameter in small.named_parameters():
    parameter.register_post_accumulate_grad_hook(lambda p, name=name: print("ready:", name))
small(torch.ones(1, 2)).sum().backward()

print("\nthe first layer used twice:")
small[0](small(torch.ones(1, 2))).sum().backward()

# %% [markdown]
# The last layer comes first, and each hook is called once, when all uses of its parameter have been
# added up. So **tied** weights, which are one parameter in two places, need nothing special, as long as
# you count them once. (`module.parameters()` gives each parameter once.)
#
# A **frozen** parameter, with `requires_grad=False`, gets no gradient, and you cannot register a hook
# on it. A parameter that is not used in a forward pass gets no gradient in that step, and **its hook is
# not called**.
#
# That last case is where home-made versions hang: a bucket that waits for *all* of its hooks never
# starts, unless the end of the step starts it. (Torch's DDP stops with an error in the next step, unless
# you pass `find_unused_parameters=True`: then it searches the graph after each forward pass for parameters
# that will get no gradient.) And if ranks use *different* parameters, as in a mixture of experts, their
# buckets fill up in different orders, while collectives have to be called in the same order on all ranks.
# One rule solves both: **each bucket starts only after the one before it in the list**, and at the end those
# that are left are started, in order.
#
# ## Exercise: BucketedDDP (3 points)
#
# - `BucketedDDP(module, bucket_bytes)` wraps a module and broadcasts rank 0's weights and buffers. Its
#   buckets are those that `assign_buckets` makes of the distinct parameters that require a gradient. (If
#   you have not finished `assign_buckets`, do that first.)
# - `forward` takes the same arguments as the module's `forward`. While it trains (`self.training`), each
#   call begins with rank 0's buffers on every rank: a batch norm's running mean follows a rank's own
#   batches, and would drift apart.
# - Hooks start an `all_reduce(..., async_op=True)` of each bucket while backward is still running. With
#   `async_op=True` the call returns a request at once; the sum is there after the request's `wait()`.
# - After `finish_gradient_synchronization()` every `p.grad` is the mean over ranks. For a parameter
#   that no rank has used, it is `None` or zeros.
# - If a second backward comes before that call, its gradients are added up as well, or a `RuntimeError`
#   is raised. They must not get lost: the buckets of the first backward are on their way already.
#
# It is used like this, step after step:
#
# ```python
# ddp = BucketedDDP(model, bucket_bytes=25 << 20)
# loss = loss_function(ddp(x), y)
# optimizer.zero_grad()
# loss.backward()
# ddp.finish_gradient_synchronization()
# optimizer.step()
# ```
#
# The grader counts the all-reduces, and checks that one is in flight while a rank is still computing
# gradients. The three methods with an underscore are a suggestion; do it another way if you like.

# %%
class BucketedDDP(nn.Module):
    """Averages gradients bucket by bucket, while backward still runs."""

    def __init__(self, module: nn.Module, bucket_bytes: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.module = module
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, 0)
        trained = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in trained]
        self.buckets = [[trained[i] for i in b] for b in assign_buckets(sizes, bucket_bytes)]
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, number=number: self._ready(number)
                )
        self._begin()
        ### END SOLUTION

    def _begin(self) -> None:
        """Be ready for the next backward."""
        ### BEGIN SOLUTION
        self.missing = [len(bucket) for bucket in self.buckets]
        self.in_flight = []
        ### END SOLUTION

    def _ready(self, number: int) -> None:
        """A gradient of this bucket is ready."""
        ### BEGIN SOLUTION
        if self.missing[number] == 0:
            raise RuntimeError("finish_gradient_synchronization comes before the next backward")
        self.missing[number] -= 1
        while (k := len(self.in_flight)) < len(self.buckets) and self.missing[k] == 0:
            self._start()
        ### END SOLUTION

    def _start(self) -> None:
        """Start the all-reduce of the next bucket."""
        ### BEGIN SOLUTION
        bucket = self.buckets[len(self.in_flight)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.flatten() for part in parts])
        self.in_flight.append((flat, dist.all_reduce(flat, async_op=True)))
        ### END SOLUTION

    def forward(self, *args, **kwargs):
        """What the module itself gives."""
        ### BEGIN SOLUTION
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(*args, **kwargs)
        ### END SOLUTION

    def finish_gradient_synchronization(self) -> None:
        """Wait until every p.grad is the mean over ranks."""
        ### BEGIN SOLUTION
        while len(self.in_flight) < len(self.buckets):
            self._start()
        for bucket, (flat, request) in zip(self.buckets, self.in_flight):
            request.wait()
            flat /= dist.get_world_size()
            for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = mean.view_as(p)
        self._begin()
        ### END SOLUTION


ddp_works = check(BucketedDDP)
ddp_works

# %% [markdown]
# ## Your overlap
#
# Here is the same step as above, with your buckets. The thin bars below a lane are collectives in flight.
#
# **Predict:** six layers have 590 kB of gradients each, and the last layer 1.5 kB. With buckets of 1 MiB,
# how many all-reduces does a step take instead of 14?
#
# <details><summary>3</summary>
#
# No: two of the large layers are more than 1 MiB together, so they cannot share a bucket.
# </details>
#
# <details><summary>6</summary>
#
# Yes: one for each large layer. The last layer shares the first bucket with one of them.
# </details>
#
# <details><summary>7</summary>
#
# No: there are seven layers, but the last one is small enough to share a bucket.
# </details>

# %% tags=["nbval-ignore-output"]
def bucketed_step(wrapper, bucket_bytes):
    model = wrapper(wide_network(), bucket_bytes)
    x = torch.randn(128, 384)
    for step in range(2):  # the first one warms up
        model.zero_grad()
        loss = model(x).square().mean()
        dist.barrier()
        if step:
            mark("backward")
        loss.backward()
        if step:
            mark("finish")
        model.finish_gradient_synchronization()
        if step:
            mark("done")


if ddp_works:
    overlapped = run(bucketed_step, 2, BucketedDDP, 1 << 20)
    shown = timeline(overlapped, since="backward", until="done")
else:
    shown = "first write BucketedDDP"
shown

# %% [markdown]
# A step takes 6 all-reduces now, one for each layer of 384 × 384. When backward is over, only the buckets
# that are still in flight have to be waited for. The last bucket, which holds the *first* layer, becomes
# ready when backward ends, so nothing is left to hide it behind. (A rank that is ahead waits longer: for
# the other rank's gradients, whatever the bucket.)
#
# ### What it saves
#
# The whole step need not have become shorter, and backward may even take longer than before: gloo copies
# the bytes on the same cores that compute. To see what overlap is worth where a network carries the bytes,
# take the virtual clock of chapter 13. The model has 48 gradients of 2 MB each, and backward needs half a
# millisecond for each. The class that trains is *yours*; only the time of computing is made up, by
# `time.sleep`. For comparison, there is a step with the same buckets, all of them reduced after backward.
#
# **Predict:** backward takes 24 ms. On 8 ranks with links of 10 GB/s and 20 µs, the all-reduces of 12
# buckets of 8 MB take about 20 ms in all. How long is the step with overlap?
#
# <details><summary>About 26 ms: the last bucket sticks out</summary>
#
# Yes: it becomes ready only when backward ends, and takes about 1.7 ms.
# </details>
#
# <details><summary>24 ms: everything is hidden behind backward</summary>
#
# No: the last bucket becomes ready only when backward ends, so nothing is left to hide it.
# </details>
#
# <details><summary>44 ms: the two times add up</summary>
#
# No: that is the step without overlap. Here a bucket travels while the next one is computed.
# </details>
#
# Is it better with large buckets or with small ones?

# %%
class AfterBackward(nn.Module):
    """The same buckets, all of them reduced when backward is over."""

    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        parameters = list(module.parameters())
        sizes = [p.numel() * p.element_size() for p in parameters]
        self.buckets = [[parameters[i] for i in b] for b in assign_buckets(sizes, bucket_bytes)]

    def forward(self, *args):
        return self.module(*args)

    def finish_gradient_synchronization(self):
        for bucket in self.buckets:
            flat = torch.cat([p.grad.flatten() for p in bucket])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
            for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = mean.view_as(p)


def virtual_step(wrapper, bucket_bytes):
    """Seconds until backward is over, and until the step is."""
    layers = nn.ParameterList(torch.ones(500) for _ in range(48))  # 2 kB each
    model = wrapper(layers, bucket_bytes)
    dist.barrier()
    started = time.perf_counter()
    for layer in reversed(list(layers)):
        time.sleep(0.5e-3)  # a layer's part of backward, on the virtual clock
        layer.sum().backward()  # its gradient is ready: the hook is called
    computed = time.perf_counter() - started
    model.finish_gradient_synchronization()
    return computed, time.perf_counter() - started


if ddp_works:
    # again a thousandth of the bytes, on links of a thousandth of the speed
    network_of_8 = {"alpha": 20e-6, "beta": 1e3 / 10e9, "algorithms": {"all_reduce": "ring"}}
    print("a bucket     all-reduces   after backward   during backward   not hidden")
    for gradients in (1, 4, 12, 48):
        done = [
            simulate(virtual_step, 8, wrapper, 2000 * gradients, record=False, **network_of_8)
            for wrapper in (AfterBackward, BucketedDDP)
        ]
        after, during = (max(seconds for _, seconds in ran) for ran in done)
        computed = max(seconds for seconds, _ in done[1])
        print(
            f"{2 * gradients:5} MB {48 // gradients:14} {1e3 * after:13.1f} ms"
            f" {1e3 * during:14.1f} ms {1e3 * (during - computed):9.1f} ms"
        )

# %% [markdown]
# Compare the two columns of times. With one bucket for everything (the last row) they are the same:
# your all-reduce begins in the hook of the very last gradient, when there is nothing left to compute.
# With a bucket for each gradient (the first row), all of them together take longer than backward, since
# each pays its latency, and they queue up. In between, most of the communication disappears behind the
# computation, and what remains is about one bucket.
#
# That answers the question from the beginning: averaging costs the step only what does not fit behind
# backward, and that is at least the last bucket. But it can hide no more than backward takes. On a slower
# network or with fewer samples for each rank, communication outlasts computation, and then overlap
# shortens the step without hiding all of the communication.
#
# ## Accumulation: not every backward should communicate
#
# When the batch you want does not fit into memory, you add up the gradients of several smaller ones
# and make one step. A DDP that reduces in every backward sends all gradients every time, though only
# their sum is needed. So implementations have a switch; torch's is
# [`no_sync()`](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync).
#
# **Predict:** you accumulate four small batches. What if you reduce `p.grad` after each of them, and not
# only once at the end?
#
# <details><summary>The gradient is wrong: its first part is averaged four times</summary>
#
# No: once it is averaged, it is the same on all ranks, so that averaging it again changes nothing.
# </details>
#
# <details><summary>The gradient is right, with four times the traffic</summary>
#
# Yes: what has been averaged is the same on all ranks, and its mean is itself.
# </details>

# %%
def accumulate(reduce_each_time, data=None):
    """The gradient of the first layer after four small batches, and the all-reduces that it took."""
    rank, n = dist.get_rank(), dist.get_world_size()
    model = network(seed=0)
    for x, y in zip(*(tensor[rank::n].chunk(4) for tensor in data)):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
        if reduce_each_time:
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= n
    if not reduce_each_time:
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= n
    return model[0].weight.grad


each = run(accumulate, 4, True, (points, which))
once = run(accumulate, 4, False, (points, which))
print("the same gradient:", torch.allclose(each[0], once[0], atol=1e-6))
for name, ran in (("each time", each), ("once", once)):
    calls = sum(op.kind == "all_reduce" for op in ran.trace.operations[0])
    print(f"{name:9}: {calls:2} all-reduces on each rank")

# %% [markdown]
# Reducing each time is also right. It just takes four times the traffic.
#
# ## Against torch's own
#
# `torch.nn.parallel.DistributedDataParallel` does what yours does, in C++: a broadcast at the start, one of
# the buffers in each forward (`broadcast_buffers=True`), hooks, and buckets in reverse order, which it
# [rebuilds after the first step](https://github.com/pytorch/pytorch/pull/35137) in the order in which the
# gradients became ready. It waits for its buckets at the end of `backward`, so it needs no
# `finish_gradient_synchronization`. By default its first bucket holds only 1 MiB. And it has
# [options](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
# that yours lacks: with `gradient_as_bucket_view=True` each `p.grad` is a view of its bucket and need not be
# copied; `static_graph=True` promises that every step uses the same parameters; and a
# [communication hook](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html) may, for example, send the
# gradients in bfloat16.

# %%
class TorchDDP(nn.Module):
    """torch's own, with the interface of yours."""

    def __init__(self, module, bucket_bytes):
        super().__init__()
        from torch.nn.parallel import DistributedDataParallel

        self.inner = DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)

    def finish_gradient_synchronization(self):
        pass


def training(wrapper, data=None, steps=30):
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = wrapper(network(seed=rank), 4096)  # other weights on each rank: rank 0's must win
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        model.finish_gradient_synchronization()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


if ddp_works:
    ours = run(training, 4, BucketedDDP, (points, which), seconds=60)
    theirs = run(training, 4, TorchDDP, (points, which), seconds=60)
    apart = max(abs(a - b) for r in range(4) for a, b in zip(ours[r], theirs[r]))
    print("the same losses on every rank, within 0.001:", apart < 1e-3)

# %% [markdown]
# And how long does a real step take, on two ranks of this computer?

# %% tags=["nbval-ignore-output"]
def step_times(wrapper, steps=22):
    model = wrapper(wide_network(), 1 << 20)
    x, taken = torch.randn(128, 384), []
    for _ in range(steps):
        dist.barrier()
        started = time.perf_counter()
        model.zero_grad()
        model(x).square().mean().backward()
        model.finish_gradient_synchronization()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[2:])


if ddp_works:
    wrappers = {"after backward": AfterBackward, "yours": BucketedDDP, "torch's": TorchDDP}
    for name, wrapper in wrappers.items():
        ran = run(step_times, 2, wrapper, seconds=60)
        sums = sum(op.kind == "all_reduce" for op in ran.trace.operations[0])
        print(f"{name:15} {1e3 * max(ran[0], ran[1]):6.1f} ms, {sums / 22:3.1f} all-reduces a step")

# %% [markdown]
# The times vary from run to run, and so may the order. With gloo the cores that compute also carry the
# bytes: starting early may gain time here, and may lose as much, when the threads that send take the
# processor from backward. Torch makes fewer all-reduces: it closes a bucket once the cap *has been* passed;
# you close it before that. NCCL gives a small part of a GPU to communication and lets the links move the
# bytes, so there the virtual table above is closer to what you will see.
#
# ## Summary
#
# 64 GPUs finish the batch in about a second, and averaging their gradients adds whatever does not fit
# behind backward: at best about one bucket.
#
# - Data parallelism: every rank has the whole model and an equal part of the batch. Gradients are
#   **averaged** before the optimizer steps. Same weights at the start, same steps: one curve.
# - Each way, a parameter server's link carries $(n-1)S$, and a ring's $2\frac{n-1}{n}S$, less than $2S$
#   for any $n$.
# - Buckets in reverse order, started from hooks, hide communication behind backward. If they are too
#   small, each pays its latency; if too large, nothing overlaps.
# - Tied, frozen and unused parameters are where implementations break. A fixed order of buckets keeps
#   them from hanging.
#
# **Where this is used:** in `DistributedDataParallel` and [Horovod](https://arxiv.org/abs/1802.05799).
# When the model no longer fits into one rank's memory, it has to be sharded.
#
# ### Check yourself
#
# <details><summary>A colleague's loss is a <em>sum</em> over the samples of the batch. Should gradients be averaged?</summary>
#
# No. The gradient of the whole batch is then the sum of the parts' gradients, so they should be added
# up. A DDP that averages makes it $n$ times too small.
# </details>
#
# <details><summary>Your backward takes 24 ms, and the all-reduces of your buckets 40 ms. How long is a step at least, with perfect overlap?</summary>
#
# A little over 40 ms: the buckets queue up behind each other, and the first can start only when its
# gradients are ready. Overlap hides the shorter of the two behind the longer one.
# </details>
#
# <details><summary>Rank 2 does not use expert 5, and all other ranks do. What goes wrong if each rank starts a bucket as soon as it is complete?</summary>
#
# On rank 2 the bucket with expert 5 is not complete during backward, so rank 2 goes on to the all-reduce
# of the following bucket. The others call theirs in a different order, and the sums mix gradients of
# different parameters, or the ranks hang. Buckets have to be started in one agreed order.
# </details>
#
# **Next:** [16 · Scale math](16_scale_math.ipynb): how much memory, computing and communication a large
# model needs.
