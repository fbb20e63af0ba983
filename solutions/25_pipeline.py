# %% [markdown]
# # 25 · Pipeline parallelism
#
# FSDP (chapter [24](24_fsdp.ipynb)) cuts the weights of a large model into shards, and gathers each
# layer before it is used. Inside a machine that is fast; between machines, moving the weights may take
# longer than computing with them. The alternative is to leave the weights where they are and move the
# *data*: rank 0 has the first layers, rank 1 the next ones, and so on, and what a rank has computed goes to
# the next. But then each rank waits for the one before. How can they all work at the same time?
#
# **You will learn** why a batch is cut into micro-batches, in which orders a rank can work through them,
# what each order costs in idle time and in memory, and what can go wrong with the messages. You will write
# two orders, the formula for their idle time, and a function that runs a stage of a real model.
#
# **You need** chapters [01](01_point_to_point.ipynb) (`isend` and `irecv`),
# [12](12_deadlock_clinic.ipynb), and [16](16_scale_math.ipynb), where you met pipelines first.
#
# **Time:** 2½ hours, and 4 exercises, of which the last is worth 2 points.

# %%
import time

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Layers on different ranks
#
# ![Eight layers on four ranks, two on each. Solid arrows lead from each rank to the next: activations, in
# the forward pass. Dashed arrows lead back: their gradients, in the backward
# pass.](../imgs/pipeline_stages.png)
#
# Each rank has a few consecutive layers: a **stage**. In the forward pass, a stage receives the output of
# the stage before, computes, and sends its own output on. In the backward pass, gradients come back the
# other way. What travels is one tensor of shape (batch, sequence, hidden) in each direction, and no
# weights. In chapter 16 the time for that was far below the time of computing.
#
# Here is a step on four [simulated ranks](../docs/simulation.md), whose clock counts `time.sleep` as
# computing. For the whole batch, a stage takes 4 ms forward and 8 ms backward.
#
# **Predict:** what share of the time does each of the 4 stages work?
#
# <details><summary>A quarter</summary>
#
# Yes: the batch is on one stage at a time, and the others wait for it to come or to come back.
# </details>
#
# <details><summary>Half, since each waits only for its input</summary>
#
# No: it also waits for its gradient, while all the stages after it go forward and back.
# </details>
#
# <details><summary>All of it, once the batch has reached the last stage</summary>
#
# No: then the first stages wait for the gradients. There is only this one batch.
# </details>

# %%
def whole_batch():
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    x = torch.ones(4)
    if stage > 0:
        dist.recv(x, stage - 1)
    time.sleep(0.004)  # the forward pass
    if stage < last:
        dist.send(x, stage + 1)
        dist.recv(x, stage + 1)
    time.sleep(0.008)  # the backward pass
    if stage > 0:
        dist.send(x, stage - 1)


one_by_one = simulate(whole_batch, 4, alpha=0, beta=0)
share = 0.012 / one_by_one.seconds
print(f"{1000 * one_by_one.seconds:.0f} ms, of which each stage works 12: a share of {share:.2f}")
timeline(one_by_one)

# %% [markdown]
# Only one stage works at any time: four ranks have four times the memory of one, and are no faster.
#
# ## Micro-batches
#
# So the batch is cut into $m$ **micro-batches** of the same size. When stage 0 has run the forward pass of
# the first one, it sends the output on and begins with the second. The result stays the same: the gradient
# of the batch's mean loss is the mean over the micro-batches, and each call of `backward` adds to `p.grad`
# what its micro-batch contributes.
#
# In which order? Each stage has $2m$ passes to run, and two rules to obey. A forward pass needs that of
# the stage before. A backward pass needs that of the stage after; on the last stage it needs only the
# stage's own forward pass. The simplest order is that of [GPipe](https://arxiv.org/abs/1811.06965) (Huang
# and others 2019): all forward passes, then all backward passes.
#
# ## Exercise: gpipe_order
#
# Return that order as a list of pairs. `("forward", i)` stands for the forward pass of micro-batch $i$,
# from 0, and `("backward", i)` for its backward pass. The backward passes may begin with the first
# micro-batch or with the last.

# %%
def gpipe_order(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    ### BEGIN SOLUTION
    numbers = range(micro_batches)
    return [("forward", i) for i in numbers] + [("backward", i) for i in numbers]
    ### END SOLUTION


gpipe_known = check(gpipe_order)
gpipe_known

# %% [markdown]
# ## Idle time
#
# `passes` goes through an order on a rank: for each pass it receives, sleeps as long as the pass takes, and
# sends. With four micro-batches a pass takes a quarter of what it took above: 1 ms forward and 2 ms backward.
# `draw` shows when a stage runs which pass; the numbers are those of the micro-batches.
#
# **Predict:** how long does the step take on 4 stages with 4 micro-batches?
#
# <details><summary>12 ms, as long as a stage has work</summary>
#
# No: a stage without work waits, and each one does so at some time in the step.
# </details>
#
# <details><summary>21 ms</summary>
#
# Yes: 12 ms of work, and 9 in which the pipeline fills and empties.
# </details>
#
# <details><summary>48 ms, as before: the work is the same</summary>
#
# No: it is the same work, but four stages now do some of it at the same time.
# </details>

# %%
SECONDS = {"forward": 0.001, "backward": 0.002}


def passes(order_of, micro_batches, send=None, seconds=SECONDS, note=mark):
    """Run the passes of this rank's stage; nothing is computed."""
    stage, stages = dist.get_rank(), dist.get_world_size()
    requests = []
    for what, i in order_of(stage, stages, micro_batches):
        before, after = (stage - 1, stage + 1) if what == "forward" else (stage + 1, stage - 1)
        if what != "weight" and 0 <= before < stages:
            dist.recv(torch.empty(4), before)
        note(f"{what} {i}")
        time.sleep(seconds[what])
        note("done")
        if what != "weight" and 0 <= after < stages:
            requests.append((send or dist.isend)(torch.empty(4), after))
    for request in requests:
        if request is not None:
            request.wait()


# a third kind of pass, "weight", comes at the end of the chapter
COLOURS = {"forward": "#9ecae1", "backward": "#fdae6b", "weight": "#a1d99b"}


def draw(ran, title):
    figure, axes = plt.subplots(figsize=(9, 2.3))
    for stage, marks in enumerate(ran.trace.marks):
        for begin, end in zip(marks[::2], marks[1::2]):
            what, number = begin.text.split()
            start, width = begin.time / 1e6, (end.time - begin.time) / 1e6
            axes.barh(stage, width, left=start, color=COLOURS[what], edgecolor="black", lw=0.6)
            axes.text(start + width / 2, stage, number, ha="center", va="center", fontsize=8, color="black")
    axes.set_yticks(range(len(ran.trace.marks)), [f"stage {s}" for s in range(len(ran.trace.marks))])
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_title(f"{title}: {1000 * ran.seconds:.0f} ms", fontsize=10)
    plt.show()


if gpipe_known:
    gpipe = simulate(passes, 4, gpipe_order, 4, alpha=0, beta=0)
    print(f"{1000 * gpipe.seconds:.0f} ms")
    draw(gpipe, "GPipe, 4 micro-batches")

# %% [markdown]
# (Blue is forward, orange backward.) Each stage works 12 ms and is idle for 9: the last one at both ends of the
# step, the first one in the middle. This idle time is the **bubble**.
#
# The same step on the course's timeline, where waiting has a colour and messages are arrows:

# %%
def without_marks(order_of, micro_batches):
    passes(order_of, micro_batches, note=lambda text: None)


if gpipe_known:
    display(timeline(simulate(without_marks, 4, gpipe_order, 4, alpha=0, beta=0)))

# %% [markdown]
# ## Exercise: pipeline_bubble
#
# What share of the time is a stage idle, with `stages` stages and `micro_batches` micro-batches? A forward
# pass takes the same time on every stage, and so does a backward pass (which may take longer than a forward
# pass). Messages take no time. The time is that of the whole step, from the start of the first forward pass
# to the end of the last backward pass.
#
# How many passes does a stage run in the picture, and for how many does it wait? What do more stages change, and
# what do more micro-batches?

# %%
def pipeline_bubble(stages: int, micro_batches: int) -> float:
    ### BEGIN SOLUTION
    return (stages - 1) / (micro_batches + stages - 1)
    ### END SOLUTION


bubble_known = check(pipeline_bubble)
bubble_known

# %% [markdown]
# Papers often compare the bubble with the *work* instead ([Narayanan and others
# 2021](https://arxiv.org/abs/2104.04473)). With $p$ stages, that is $(p-1)/m$, which can exceed 1.
#
# How many micro-batches do 8 stages need so that they are idle for less than a tenth of the time?

# %%
if gpipe_known and bubble_known:
    for stages, m in ((2, 4), (4, 4), (8, 8), (8, 32), (8, 64)):
        ran = simulate(passes, stages, gpipe_order, m, alpha=0, beta=0)
        measured = 1 - m * sum(SECONDS.values()) / ran.seconds
        formula = pipeline_bubble(stages, m)
        print(f"{stages} stages, {m:2} micro-batches: measured {measured:.4f}, formula {formula:.4f}")

# %% [markdown]
# Measured and computed agree in every digit shown. Less than a tenth takes 64 micro-batches:
# $(p-1)/(m+p-1) < 1/10$ means $m > 9(p-1) = 63$.
#
# ## Memory
#
# Between its forward and its backward pass, a micro-batch is **in flight** on a stage: autograd keeps what
# the layers need for their gradients. In GPipe's order all $m$ are in flight at once. So the bubble gets
# smaller with $m$, and the memory grows with it.
#
# **Predict:** look at the picture of GPipe. Which stage could have run its first backward pass much sooner?
#
# <details><summary>The first one, which is idle in the middle</summary>
#
# No: its gradient has to come back through all other stages, and they have only just begun.
# </details>
#
# <details><summary>The last one</summary>
#
# Yes: it needs no gradient of another stage, so it could turn round right after its first forward pass.
# </details>
#
# <details><summary>None: a backward pass needs the whole batch</summary>
#
# No: it needs the forward pass of its own micro-batch, and nothing of the others.
# </details>
#
# Once one stage turns round early, the stage before it can follow, because its gradient is there, and so on up the
# pipeline. That is **1F1B**, one forward, one backward. It comes from [PipeDream](https://arxiv.org/abs/1806.03377)
# (Harlap and others 2018), which lets micro-batches see different weights. The form here empties the pipeline at
# the end of every step, a *flush*, so that all see the same ones. It was introduced in
# [DAPPLE](https://arxiv.org/abs/2007.01045) (Fan and others 2021) and in
# [PipeDream-2BW](https://arxiv.org/abs/2006.09503), and [Megatron-LM](https://arxiv.org/abs/2104.04473) uses it
# (both Narayanan and others 2021).
#
# - First comes the **warm-up**: forward passes only, until the first gradient can arrive. That is none on the
#   last stage, one on the stage before it, two on the one before that, and so on.
# - Then it runs a forward pass and a backward pass in turn, as long as there are forward passes left.
# - At the end come the backward passes that are left.
#
# ## Exercise: one_f_one_b_order
#
# Return the order of a stage, in the same form. Backward passes come in the order of the forward ones. On
# stage number `stage`, counted from 0, at most `stages - stage` micro-batches are ever in flight. There may be
# fewer micro-batches than that.

# %%
def one_f_one_b_order(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    ### BEGIN SOLUTION
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
    ### END SOLUTION


alternate_known = check(one_f_one_b_order)
alternate_known

# %% [markdown]
# Is the bubble smaller now? With GPipe, stage 0 of 4 is idle once, for 9 ms.
#
# **Predict:** when is it idle with 1F1B, if there are 8 micro-batches?
#
# <details><summary>Also once, for 9 ms</summary>
#
# No: its first gradient is back sooner than with GPipe, after a wait of 6 ms.
# </details>
#
# <details><summary>A little after every pass</summary>
#
# No: while forward passes are left, it has work until the next gradient is there.
# </details>
#
# <details><summary>For 6 ms after its first passes, and for 1 ms three times near the end</summary>
#
# Yes: it waits for its first gradient, and again when only backward passes are left: those come every 3 ms, and
# each takes it 2.
# </details>

# %%
def most_in_flight(order):
    now = most = 0
    for what, _ in order:
        now += 1 if what == "forward" else -1
        most = max(most, now)
    return most


if gpipe_known and alternate_known:
    for name, order_of in (("GPipe", gpipe_order), ("1F1B", one_f_one_b_order)):
        ran = simulate(passes, 4, order_of, 8, alpha=0, beta=0)
        in_flight = [most_in_flight(order_of(stage, 4, 8)) for stage in range(4)]
        print(f"{name:5} {1000 * ran.seconds:.0f} ms; in flight at most, by stage: {in_flight}")
        draw(ran, f"{name}, 8 micro-batches")
    display(timeline(simulate(without_marks, 4, one_f_one_b_order, 8, alpha=0, beta=0)))

# %% [markdown]
# The bubble is the same, but 1F1B never holds more than $p$ micro-batches, so $m$ can be large. (The timeline is that
# of 1F1B: stages wait where the chart above it is white.)
#
# The first stage still needs $p$ times what the last one does. That is one reason to share out layers
# unevenly: for [Llama 3](https://arxiv.org/abs/2407.21783), the first stage got one layer fewer, and so did
# the last, which also computes the logits and the loss.
#
# ## Sending both ways
#
# Look at two neighbours in the middle of 1F1B. One has run a forward pass and sends its output up. The
# other has run a backward pass and sends a gradient down, at the same moment.
#
# **Predict:** `passes` sends with `isend`. What happens with `dist.send`? (On gloo, `send` returns only when the
# receive has been posted.)
#
# <details><summary>Both orders run, only slower</summary>
#
# No: in 1F1B two neighbours send to each other, and each waits for a receive that comes after its own
# send.
# </details>
#
# <details><summary>GPipe's order runs, 1F1B hangs</summary>
#
# Yes: in GPipe's order all messages go one way and then the other. In 1F1B they cross.
# </details>
#
# <details><summary>Both orders hang</summary>
#
# No: in GPipe's order the rank that a send goes to is waiting for just that message, or soon will be.
# </details>

# %%
if gpipe_known and alternate_known:
    for name, order_of in (("GPipe", gpipe_order), ("1F1B", one_f_one_b_order)):
        ran = run(passes, 2, order_of, 3, dist.send, {"forward": 0, "backward": 0}, may_fail=True)
        print(f"{name}: {ran.failure.message if ran.failure else 'done'}\n")

# %% [markdown]
# In GPipe's order each `send` meets a rank that is waiting for it. In 1F1B two ranks send to each other and neither
# receives: chapter 12's first patient. There are two ways out. With `isend`, a rank goes on while its message
# waits. Or a rank starts its send and its receive together, as with torch's `batch_isend_irecv`; Megatron-LM has a
# function
# [`send_forward_recv_backward`](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/pipeline_parallel/p2p_communication.py)
# for that.
#
# An `isend` has a price: until you `wait` for it, the tensor has to stay as it is, and so it stays in
# memory. The request itself keeps it alive.
#
# ## Exercise: run_pipeline
#
# Now work with tensors. Rank $r$ has stage $r$ of a model; there are as many stages as ranks. Run `stage`, an
# `nn.Module`, in the given order.
#
# - `inputs` is the list of micro-batches on the first stage, and `targets` the list of their targets on the
#   last; elsewhere both are `None`. The inputs may be integers, such as the numbers of tokens.
# - What travels between stages has shape `shape` and the dtype of the stage's parameters, in both
#   directions.
# - The last stage computes `loss_fn(output, target)`, a mean over the micro-batch. The loss of the batch is
#   the mean over all micro-batches, which are equally large. The last stage returns it as a float, the
#   others return `None`.
# - Afterwards each parameter's `grad` is the gradient of that loss, as if the whole model had been on one
#   rank. Before the call it is `None`.
# - `order` need not be one of the two above. Every stage gets an order that fits those of the others. The numbers
#   also matter: each backward pass has to be that of the micro-batch that the order names.
# - Only point-to-point calls are allowed.
# - After a forward pass, a rank holds the activations of those micro-batches that its order has in flight:
#   their inputs, their outputs, and what autograd keeps. At most six other tensors of `shape` may be on their
#   way or left in a variable, and one gradient of each parameter: a fixed number, and not one for each micro-batch.
# - The step takes as long as the order asks: no pass waits for anything but its stage and its input. The
#   grader measures that on simulated ranks where messages take no time, for 1F1B and for one micro-batch
#   after the other.
#
# Autograd computes the gradient of a tensor that you have received if you call `x.requires_grad_()` before
# you use it. `y.backward(gradient)` begins a backward pass in the middle of a model.

# %%
def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    ### BEGIN SOLUTION
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    dtype = next(stage.parameters()).dtype
    in_flight, loss, outputs_sent, gradient_sent = {}, 0.0, {}, None
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank == last:
                y = loss_fn(y, targets[i]) / len(targets)
                loss += y.item()
            else:
                outputs_sent[i] = dist.isend(y.detach(), rank + 1)
            in_flight[i] = x, y
        else:
            x, y = in_flight.pop(i)
            gradient = None
            if rank < last:
                gradient = torch.empty(shape, dtype=dtype)
                dist.recv(gradient, rank + 1)
                outputs_sent.pop(i).wait()  # it has arrived, or there would be no gradient
            y.backward(gradient)
            if rank > 0:
                if gradient_sent is not None:
                    gradient_sent.wait()
                gradient_sent = dist.isend(x.grad, rank - 1)
    if gradient_sent is not None:
        gradient_sent.wait()
    return loss if rank == last else None
    ### END SOLUTION


pipeline_works = check(run_pipeline)
pipeline_works

# %% [markdown]
# ## Compared with one process
#
# We train a network of eight layers on four ranks, two layers each, and the same network in one process.
#
# Are the losses equal to the last bit? And the gradients? Think of how the two programs add up.

# %%
WIDTH, M, ROWS = 32, 8, 4


def layers(stage):
    torch.manual_seed(stage)
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.Tanh(), nn.Linear(4 * WIDTH, WIDTH), nn.Tanh())


def training(order_of, data, steps=20):
    """Train one stage; return the losses, and the gradients of the last step."""
    rank, n = dist.get_rank(), dist.get_world_size()
    stage, losses = layers(rank), []
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.5)
    order, (inputs, targets) = order_of(rank, n, M), data
    for _ in range(steps):
        optimizer.zero_grad()
        losses.append(
            run_pipeline(
                stage,
                order,
                inputs if rank == 0 else None,
                targets if rank == n - 1 else None,
                nn.functional.mse_loss,
                (ROWS, WIDTH),
            )
        )
        optimizer.step()
    return losses, [p.grad for p in stage.parameters()]


def alone(data, steps=20):
    model = nn.Sequential(*(layers(stage) for stage in range(4)))
    x, target = (torch.cat(part) for part in data)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.5), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, [p.grad for p in model.parameters()]


def apart(some, others):
    return max(float((a - b).abs().max()) for a, b in zip(some, others, strict=True))


if gpipe_known and alternate_known and pipeline_works:
    torch.manual_seed(9)
    data = [list(torch.randn(M * ROWS, WIDTH).tanh().split(ROWS)) for _ in range(2)]
    losses, gradients = alone(data)
    for name, order_of in (("GPipe", gpipe_order), ("1F1B", one_f_one_b_order)):
        piped = run(training, 4, order_of, data, seconds=120)
        theirs = [gradient for _, part in piped for gradient in part]
        gap = max(abs(a - b) for a, b in zip(piped[-1][0], losses))
        close = apart(theirs, gradients) < 1e-5
        print(f"{name:5} losses equal to 1e-5: {gap < 1e-5}, gradients to 1e-5: {close}")
    print("the loss has fallen:", losses[-1] < losses[0])

# %% [markdown]
# They agree, but in general not to the last bit. One process adds up the rows of the whole batch in one matrix
# product; the pipeline adds up the rows of each micro-batch, and then the micro-batches. All micro-batches of a
# step see the same weights, unlike those of the first PipeDream, so the training is the same.
#
# ## What each rank holds
#
# `HeldStorages` (chapters [23](23_zero.ipynb) and [24](24_fsdp.ipynb)) measures what the grader measures: the
# bytes of all tensors that are alive after a forward pass, without the weights, their gradients and the data.
# We give them in units of what one micro-batch in flight takes.
#
# How many micro-batches does each of 4 stages hold at most, of 6 and of 12, with either order?

# %%
from grader.instruments import HeldStorages


def held(order_of, micro_batches):
    rank, n = dist.get_rank(), dist.get_world_size()
    stage, most = layers(rank), 0
    batch = [torch.ones(ROWS, WIDTH) for _ in range(micro_batches)]

    def not_counted():
        return [*batch, *(t for p in stage.parameters() for t in (p, p.grad) if t is not None)]

    storages = HeldStorages(not_counted)

    def look(*_):
        nonlocal most
        most = max(most, storages.nbytes)

    stage.register_forward_hook(look)
    with storages:
        run_pipeline(
            stage,
            order_of(rank, n, micro_batches),
            batch if rank == 0 else None,
            batch if rank == n - 1 else None,
            nn.functional.mse_loss,
            (ROWS, WIDTH),
        )
    return most


if gpipe_known and alternate_known and pipeline_works:
    one = 4 * ROWS * (4 * WIDTH + 2 * WIDTH)  # bytes: inside, the input and the output
    for name, order_of in (("GPipe", gpipe_order), ("1F1B", one_f_one_b_order)):
        for m in (6, 12):
            by_stage = [f"{nbytes / one:5.1f}" for nbytes in run(held, 4, order_of, m)]
            print(f"{name:5} {m:2} micro-batches, held by stage:", *by_stage)

# %% [markdown]
# With GPipe every stage holds them all, and twice as many when $m$ doubles. With 1F1B stage 0 holds 4, stage 1
# holds 3, stage 3 holds one, and $m$ does not matter. (The numbers are not whole, since each tensor on its way adds a
# sixth. And a micro-batch counts only 5/6 on stage 0, because its input is data: four of them are 3.3.)
#
# What if even that is too much? A stage can keep nothing but the input of a micro-batch, and repeat its forward
# pass just before the backward pass: *activation recomputation*, which the GPipe paper also uses. If a backward
# pass takes twice as long as a forward pass, that is a third more computing. (In the exercise it would show as too
# many virtual seconds.)
#
# ## Compared with torch's own
#
# [`torch.distributed.pipelining`](https://docs.pytorch.org/docs/stable/distributed.pipelining.html) has these
# schedules: `PipelineStage` wraps a stage, and `ScheduleGPipe` or `Schedule1F1B` run it. `step` takes the whole
# batch and cuts it.
#
# Do torch's losses and gradients agree with yours, and to which digit?

# %%
def torchs(schedule, data):
    from torch.distributed import pipelining

    rank, n = dist.get_rank(), dist.get_world_size()
    stage = pipelining.PipelineStage(layers(rank), rank, n, torch.device("cpu"))
    runs = getattr(pipelining, schedule)(stage, n_microbatches=M, loss_fn=nn.functional.mse_loss)
    losses = []
    if rank == 0:
        runs.step(torch.cat(data[0]))
    elif rank == n - 1:
        runs.step(target=torch.cat(data[1]), losses=losses)
    else:
        runs.step()
    return [loss.item() for loss in losses], [p.grad for p in stage.submod.parameters()]


if gpipe_known and alternate_known and pipeline_works:
    for schedule, order_of in (("ScheduleGPipe", gpipe_order), ("Schedule1F1B", one_f_one_b_order)):
        theirs = run(torchs, 4, schedule, data, seconds=120)
        yours = run(training, 4, order_of, data, 1, seconds=120)
        mean, gap = sum(theirs[-1][0]) / M, max(apart(a[1], b[1]) for a, b in zip(theirs, yours))
        same = abs(mean - yours[-1][0][0]) < 1e-6
        print(f"{schedule:13} loss equal to 1e-6: {same}, gradients to 1e-6: {gap < 1e-6}")

# %% [markdown]
# They agree to six decimals, since both cut the batch into the same micro-batches.
#
# ## Messages take time
#
# So far they took none. Now let each take 0.2 ms, a fifth of a forward pass.
#
# A rank that posts each receive one pass ahead lets messages travel while it computes.
#
# **Predict:** which order gains more from that, GPipe's or 1F1B, with 4 stages and 8 micro-batches?
#
# <details><summary>GPipe's</summary>
#
# Yes: a stage has the next input coming while it works on one. Only the messages that fill the pipeline
# show.
# </details>
#
# <details><summary>1F1B, where messages go both ways</summary>
#
# No: there two neighbours need what the other has only just computed. A receive that waits early does
# not help.
# </details>
#
# <details><summary>Both alike: they send the same messages</summary>
#
# No: what can be hidden depends on what a stage has to do meanwhile, and in 1F1B it needs the message
# next.
# </details>

# %%
def receiving_early(order_of, micro_batches):
    """The same passes, but each receive is posted one pass ahead."""
    stage, stages = dist.get_rank(), dist.get_world_size()
    order, requests, coming = order_of(stage, stages, micro_batches), [], {}

    def post(number):
        if number < len(order):
            before = stage - 1 if order[number][0] == "forward" else stage + 1
            if 0 <= before < stages:
                coming[number] = dist.irecv(torch.empty(4), before)

    post(0)
    for number, (what, _) in enumerate(order):
        post(number + 1)
        if number in coming:
            coming.pop(number).wait()
        time.sleep(SECONDS[what])
        after = stage + 1 if what == "forward" else stage - 1
        if 0 <= after < stages:
            requests.append(dist.isend(torch.empty(4), after))
    for request in requests:
        request.wait()


if gpipe_known and alternate_known:
    print("                    received when needed   posted one pass ahead")
    for name, order_of in (("GPipe", gpipe_order), ("1F1B", one_f_one_b_order)):
        for alpha in (0, 0.0002):
            late, early = (
                1000 * simulate(one, 4, order_of, 8, alpha=alpha, beta=0).seconds
                for one in (passes, receiving_early)
            )
            print(f"{name:5} {1000 * alpha:.1f} ms a message: {late:14.1f} ms {early:20.1f} ms")

# %% [markdown]
# A message begins to travel when its send and its receive are both posted. If the receive is posted only when the
# stage needs the tensor, the stage waits for the whole message. Posted one pass ahead, messages travel while the
# stage computes. In GPipe's order their time nearly disappears: 1.2 ms are left, for six messages through the
# pipeline and back. 1F1B gains less. Where forward and backward passes alternate, a stage needs the gradient that
# its neighbour has only just computed, and the neighbour then needs the activation that the stage has only just
# computed. So both wait while a message is on its way.
#
# ## A smaller bubble: interleaving
#
# ![Sixteen layers on four ranks, in two ways. With one stage each, rank 0 has layers 1 to 4, rank 1 layers 5 to
# 8, and so on. With two stages each, rank 0 has layers 1, 2, 9 and 10, rank 1 layers 3, 4, 11 and 12, and so
# on.](../imgs/pipeline_interleaved.png)
#
# Give each rank several shorter stages, as in the lower row: $v = 2$. A micro-batch goes round all ranks twice. The
# first one reaches the last rank after stages that are $1/v$ as long, so the pipeline fills and drains in $1/v$ of
# the time. Compared with the work, the bubble is $\frac{1}{v}\cdot\frac{p-1}{m}$
# ([Narayanan and others 2021](https://arxiv.org/abs/2104.04473)). The price is $v$ times as many messages, and more
# micro-batches in flight during the warm-up. In torch this order is `ScheduleInterleaved1F1B`.
#
# ## A smaller bubble: two kinds of backward
#
# A backward pass computes two things: the gradient of the stage's **input**, which the stage before is waiting for,
# and those of its **weights**, which nothing needs before the optimizer's step.
# [Zero Bubble Pipeline Parallelism](https://arxiv.org/abs/2401.10241) (Qi and others 2024) cuts the pass in two, and
# puts the second part where a stage would be idle.
#
# Here is the paper's first schedule, ZB-H1: it is 1F1B, but stage $s$ is always $s$ weight passes behind. A forward
# pass, the first part of a backward pass and a weight pass take 1 ms each.
#
# **Predict:** which part of the bubble disappears?
#
# <details><summary>The one at the beginning</summary>
#
# No: there is no backward pass yet, so there are no gradients of weights to compute.
# </details>
#
# <details><summary>The one at the end</summary>
#
# Yes: where 1F1B's stages wait for gradients, gradients of weights are left to be computed.
# </details>
#
# <details><summary>Both, since a third kind of pass fills every gap</summary>
#
# No: a weight pass needs a backward pass before it, and at the beginning there is none.
# </details>

# %%
def zero_bubble_order(stage, stages, micro_batches):
    """ZB-H1: like 1F1B, with the backward pass in two parts, "backward" and "weight"."""
    order, weights = [], 0
    for what, i in one_f_one_b_order(stage, stages, micro_batches):
        order.append((what, i))
        if what == "backward" and i >= stage:
            order.append(("weight", weights))
            weights += 1
    return order + [("weight", i) for i in range(weights, micro_batches)]


if alternate_known:
    equal = dict.fromkeys(("forward", "backward", "weight"), 0.001)
    ways = ("1F1B", one_f_one_b_order, SECONDS), ("ZB-H1", zero_bubble_order, equal)
    for title, order_of, seconds in ways:
        ran = simulate(passes, 4, order_of, 8, None, seconds, alpha=0, beta=0)
        print(f"{title:5} {1000 * ran.seconds:.0f} ms, idle {1000 * ran.seconds - 24:.0f} ms")
        draw(ran, title)

# %% [markdown]
# (Green is the gradient of the weights.) Of 9 ms of bubble, 3 are left, in which the pipeline fills. At the end,
# stages now compute gradients of weights while they would otherwise wait. And gradients of inputs come back sooner,
# because no stage makes another wait for a weight pass. The paper gives the bubble as $(p-1)(T_F + T_B - T_W)$,
# against $(p-1)(T_F + T_B + T_W)$ for 1F1B, with the same memory at the worst stage.
#
# No order makes a single step shorter than these 27 ms: the last stage can begin after 3 ms, and then has 24 ms of
# work. But stage 0 could be done after 24, and begin the next step. The second schedule, ZB-H2, lets it: it runs more
# forward passes at the beginning, for nearly twice the memory, and the stages no longer wait for each other at the
# optimizer's step. Here are two steps of it.

# %%
def zb_h2_order(stage, stages, micro_batches):
    """ZB-H2: more forward passes first, and weight passes where no forward passes are left."""
    numbers, warm_up = range(micro_batches), min(2 * (stages - stage) - 1, micro_batches)
    forward = [("forward", i) for i in numbers]
    order, rest = forward[:warm_up], forward[warm_up:] + [("weight", i) for i in numbers]
    for i in numbers:
        order += [("backward", i), rest.pop(0)]
    return order + rest


def two_steps(stage, stages, micro_batches):
    return 2 * zb_h2_order(stage, stages, micro_batches)


if alternate_known:
    ran = simulate(passes, 4, two_steps, 8, None, equal, alpha=0, beta=0)
    print(f"{1000 * ran.seconds:.0f} ms for two steps")
    draw(ran, "ZB-H2, two steps")

# %% [markdown]
# Nothing is idle from one step to the next: two steps take 51 ms, where ZB-H1 takes 54. (That is for passes of equal
# length.)
#
# How do you split `backward`? For a single layer, `torch.autograd.grad(y, x, gradient, retain_graph=True)` gives the
# gradient of the input, and a second call with the weights gives theirs. For a stage of many layers, that second call
# would repeat most of the first. So keep the gradient of each layer's output, and compute those of the weights from
# them. In torch this is `ScheduleInterleavedZeroBubble`. Later schedules combine the ideas of the last two sections:
# ZBV gives each rank two stages, in the shape of a V, and DeepSeek-V3's
# [DualPipe](https://github.com/deepseek-ai/DualPipe) sends micro-batches through from both ends, to compute one while
# the messages of another travel (in torch, `ScheduleZBVZeroBubble` and `ScheduleDualPipeV`).

# %% [markdown]
# ## Chapter 16, counted
#
# Chapter [16](16_scale_math.ipynb) has a formula for pipelines: the time in which activations travel to the next
# stage, over that stage's forward pass. To compare it with your `run_pipeline`, let each of 4 stages be
# torch's own transformer block, which is chapter 16's block without a gate, with biases and with norms that have
# parameters. The bytes come from the record of the run, and the operations of a forward pass from torch's counter, on
# the *meta* device.
#
# Which of the formulas is exact here, which count too little, and does the ratio come out too large or too small?

# %%
from torch.utils.flop_counter import FlopCounterMode

from grader.course import sizes  # with the functions of chapter 16

HIDDEN, TOKENS = 64, 32  # numbers of a token, and tokens of a micro-batch: one sequence
PEAK, OUTSIDE = 989e12, 50e9  # operations and bytes a second, as in chapter 16


def transformer_block(device=None):
    return nn.TransformerEncoderLayer(HIDDEN, 4, 4 * HIDDEN, dropout=0.0, batch_first=True, device=device)


def piped_blocks(batch):
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    run_pipeline(
        transformer_block(),
        one_f_one_b_order(rank, n, len(batch)),
        batch if rank == 0 else None,
        batch if rank == n - 1 else None,
        nn.functional.mse_loss,
        (1, TOKENS, HIDDEN),
    )


if alternate_known and pipeline_works:
    ran = run(piped_blocks, 4, list(torch.ones(M, 1, TOKENS, HIDDEN)), seconds=120)
    arrived = [m.nbytes for m in ran.trace.messages if (m.source, m.destination) == (0, 1)]
    block = transformer_block("meta")
    with FlopCounterMode(display=False) as counter:
        block(torch.empty(1, TOKENS, HIDDEN, device="meta"))
    sent, operations = sum(arrived) / M, counter.get_total_flops()
    of_a_block = sizes.transformer_block_params(HIDDEN, glu=False)
    rows = (
        ("parameters of a stage", of_a_block, sum(p.numel() for p in block.parameters())),
        ("bytes to the next stage", 4 * TOKENS * HIDDEN, sent),
        ("operations, forward", sizes.step_flops(TOKENS, of_a_block) / 3, operations),
        (
            "ratio",
            sizes.pp_overlap_ratio(HIDDEN, 1, PEAK, OUTSIDE, 4, glu=False),
            sent / OUTSIDE / (operations / PEAK),
        ),
    )
    print(f"{'for a micro-batch':26}{'formula':>14}{'counted':>14}{'quotient':>10}")
    for what, formula, counted in rows:
        print(f"{what:26}{formula:14,.2f}{counted:14,.2f}{counted / formula:10.4f}")

# %% [markdown]
# The bytes are exact: $e$ for each number of each token. Biases and norms add $13h$ parameters to $12h^2$, and
# attention adds $s/6h$ to the operations, here a twelfth. So there is a little more to hide behind than the formula
# says, and the ratio is 8 % smaller. Both get smaller as $h$ grows: with $h = 8192$ and 2048 tokens, attention
# is 4 %. A ratio of 50 says that a block of width 64 is too narrow for a pipeline between machines. Chapter 16 had
# less than 1 because the ratio falls with $h$ and with the layers of a stage.
#
# ## Summary
#
# A pipeline leaves weights where they are and lets micro-batches travel. Each rank talks to two neighbours, and
# sends little.
#
# - With $p$ stages and $m$ micro-batches, a stage is idle for $\frac{p-1}{m+p-1}$ of a step, with GPipe and with
#   1F1B.
# - GPipe keeps $m$ micro-batches in flight on each stage, 1F1B at most $p - s$ on stage $s$. So 1F1B can have many
#   micro-batches, and with them a small bubble.
# - In 1F1B neighbours send to each other at the same time: with a `send` that waits, they deadlock. With `isend`,
#   mind that a request keeps its tensor.
# - Interleaving makes the bubble smaller and sends more. A backward pass in two parts fills most of it with work.
#
# **Where this is used:** between machines, around tensor parallelism inside them, in
# [Megatron-LM](https://arxiv.org/abs/2104.04473) and for
# [Llama 3](https://arxiv.org/abs/2407.21783), whose interleaved 1F1B does not need the number of micro-batches to be a
# multiple of the number of stages. (If FSDP cuts the weights of a stage, each micro-batch gathers them again, or they
# stay whole for the step.) The
# [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook) compares these schedules at
# length.
#
# ### Check yourself
#
# <details><summary>One stage of four takes twice as long as the others. How long does a step take with many micro-batches?</summary>
#
# About twice as long: the slowest stage works all the time, and the others wait for it. That is why stages are
# balanced, and why the embedding and the output layer count when layers are shared out.
# </details>
#
# <details><summary>Why does the bubble not depend on whether a backward pass takes twice a forward pass or as long?</summary>
#
# A stage works for m forward and m backward passes, and waits for p − 1 of each. Both sums have the same factor,
# the time of one forward and one backward pass.
# </details>
#
# <details><summary>With the batch fixed, more micro-batches are smaller ones. Why not use very many?</summary>
#
# Matrix products of few rows use a GPU badly, and each message costs its latency. A micro-batch of one sample is
# the smallest there is.
# </details>
#
# **To go on:** torch's
# [tutorial](https://docs.pytorch.org/tutorials/intermediate/pipelining_tutorial.html) cuts a transformer into stages.
#
# **Next:** [26 · Tensor parallelism](26_tensor_parallel.ipynb), where single layers are cut.
