# %% [markdown]
# # 30 · Capstone: a transformer on a mesh
#
# [Llama 3 405B](https://arxiv.org/abs/2407.21783) was trained on up to 16,384 GPUs. No single idea in this
# course would be enough. While it trains, its parameters take 16 bytes each (chapter
# [16](16_scale_math.ipynb)), 6.5 TB in all, where a machine of eight GPUs has 640 GB. So its layers are
# shared out among machines (chapter [25](25_pipeline.ipynb)), and each layer among the GPUs inside one
# (chapter [26](26_tensor_parallel.ipynb)). Many copies of all this, each with a part of the data, agree on
# a gradient in every step (chapter [15](15_data_parallel.ipynb)). Every GPU takes part in all three at
# once, each time with different partners.
#
# In this chapter you put your own pieces together. You train a small transformer on eight ranks, in three
# dimensions, and its losses have to be those of one process.
#
# **You will learn** to give each rank its place in a mesh and its groups, to reuse code that was written for the
# whole world in a group, to read from a step's timeline who waits for whom and why, and to choose a layout by what
# each dimension sends.
#
# **You need** groups as in chapter [21](21_hierarchy.ipynb), the formulas of chapter [16](16_scale_math.ipynb) and,
# if you have them, your solutions of chapters [15](15_data_parallel.ipynb), [25](25_pipeline.ipynb) and
# [26](26_tensor_parallel.ipynb).
#
# **Time:** 3 hours, and 2 exercises, of which the last is worth 5 points.

# %%
import time
import types
import zlib
from collections import Counter
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from headcount.simulation.clusters import Nodes
from grader.submission.submission import Submission

# %% [markdown]
# ## A place in three dimensions
#
# Eight ranks are arranged as $dp \times tp \times pp = 2 \times 2 \times 2$. A rank has three coordinates:
#
# - $p$, its **stage** of the pipeline: which layers it has;
# - $t$, its place in **tensor** parallelism: which columns, rows and heads of these layers;
# - $d$, its place in **data** parallelism: which rows of the batch it sees.
#
# They are counted like the digits of a number, $t$ fastest and $p$ slowest:
#
# $$\text{rank} = (p \cdot dp + d) \cdot tp + t$$
#
# In each dimension a rank works with the ranks that differ from it **in this coordinate only**.
#
# **Predict:** with which ranks does rank 5 work along tp, dp and pp?
#
# <details><summary>4, 6 and 1</summary>
#
# No: rank 6 differs from rank 5 in $d$ and in $t$. The digits of 5 are 1, 0, 1, and those of 6 are 1, 1, 0.
# </details>
#
# <details><summary>4, 7 and 1</summary>
#
# Yes: the digits of 5 are 1, 0, 1, and each of these differs in one of them: 1, 0, 0; 1, 1, 1; 0, 0, 1.
# </details>
#
# <details><summary>6, 7 and 1</summary>
#
# No: $t$ is counted fastest, so the partner along tp is the rank next door, 4.
# </details>
#
# ![Eight ranks in two planes. The left plane is stage p = 0 with the ranks 0, 1 in its upper row and 2, 3 in its lower
# row; the right plane is stage p = 1 with 4, 5 and 6, 7. In each plane t goes to the right and d goes down. Thick
# lines connect 0 and 1, 2 and 3, 4 and 5, 6 and 7: tensor parallelism. Dashed lines connect 0 and 2, 1 and 3, 4 and
# 6, 5 and 7: data parallelism. Arrows lead from 0 to 4, 1 to 5, 2 to 6, 3 to 7: the
# pipeline.](../imgs/mesh.png)
#
# Rank 5 is $p = 1$, $d = 0$, $t = 1$: it shares its layers with rank 4 and averages gradients with rank 7, and rank 1
# sends it activations.
#
# Why this order? Launchers such as `torchrun` give the ranks of one machine consecutive numbers. Tensor parallelism
# makes each layer wait for what is sent (chapter 26), so it gets the fastest links. The end of the chapter measures
# what another order costs.
#
# ## Exercise: build_mesh
#
# Return a dictionary with your rank's three process groups, `"dp"`, `"tp"` and `"pp"`. There are
# `dp * tp * pp` ranks. A group may have a single rank. The only collective that you need is
# `dist.new_group`.

# %%
def build_mesh(dp: int, tp: int, pp: int) -> dict[str, dist.ProcessGroup]:
    """The groups of this rank along the three dimensions."""
    ### BEGIN SOLUTION
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
    ### END SOLUTION


mesh_works = check(build_mesh)
mesh_works

# %% [markdown]
# Torch has a name for this. A
# [`DeviceMesh`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.device_mesh.DeviceMesh) is
# an array of ranks with names for its dimensions, and `get_group` gives your rank's group along one of them.

# %%
def both_meshes(dp, tp, pp):
    from torch.distributed.device_mesh import init_device_mesh

    torchs = init_device_mesh("cpu", (pp, dp, tp), mesh_dim_names=("pp", "dp", "tp"))
    ours = build_mesh(dp, tp, pp)
    return {
        name: [dist.get_process_group_ranks(group) for group in (ours[name], torchs.get_group(name))]
        for name in ("dp", "tp", "pp")
    }


if mesh_works:
    found = run(both_meshes, 6, 1, 3, 2, seconds=120)
    for name, (yours, torchs) in found[5].items():
        print(f"rank 5 of 1 × 3 × 2 along {name}: yours {yours}, torch's {torchs}")
    print("the same on all ranks:", all(a == b for groups in found for a, b in groups.values()))

# %% [markdown]
# ## The model
#
# A transformer as small as it can be and still be one: an embedding, blocks with attention and an MLP, a norm, and
# a head. It teaches nothing new, so it is given. `config` is a dictionary.
#
# - `initial_weight(config, name)` makes a whole weight from a seed and its name. Every rank can make any weight and
#   cut its part out of it, so nothing has to be sent at the beginning.
# - `Block` gets its weights in a dictionary, with the names in `BLOCK`. They are either whole, or the part
#   for some heads and columns; `heads` is the number of heads in that part. As in chapter 26, `enter` is
#   called where shards begin, and `leave` where they end. Each takes one tensor and returns another; in one
#   process both do nothing. `seconds` is for simulated ranks, where computing takes no time unless we say
#   so.
# - Norms have no weights, and there are no biases and no embeddings of positions, so there are fewer parts to cut.
#   (Order is not lost: the mask is causal, so the first token sees only itself, and the tenth sees ten.)

# %%
BLOCK = ("query", "key", "value", "out", "up", "down")


def initial_weight(config, name):
    """A whole weight as training begins, the same on every rank: "embedding", "head", "0.query", "0.key", …"""
    h, v = config["width"], config["vocabulary"]
    shapes = {"embedding": (v, h), "up": (h, 4 * h), "down": (4 * h, h), "head": (h, v)}
    rows, columns = shapes.get(name.split(".")[-1], (h, h))
    generator = torch.Generator().manual_seed(config["seed"] + zlib.crc32(name.encode()))
    return torch.randn(rows, columns, generator=generator) * h**-0.5


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def attention(q, k, v, heads):
    """Causal attention; the last dimension holds some heads side by side."""
    parts = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)


def same(x):
    return x


class Busy(torch.autograd.Function):
    """Pass x on, and take time: once forward, twice backward."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(2 * ctx.seconds)
        return gradient, None


class Embed(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, tokens):
        return F.embedding(tokens, self.weight)


class Block(nn.Module):
    seconds = 0.0  # of computing in a forward pass, for simulated ranks

    def __init__(self, weights, heads, enter=same, leave=same):
        super().__init__()
        self.weights = nn.ParameterDict(weights)
        self.heads, self.enter, self.leave = heads, enter, leave

    def forward(self, x):
        x = Busy.apply(x, self.seconds) if self.seconds else x
        w, y = self.weights, self.enter(norm(x))
        heads = attention(y @ w["query"], y @ w["key"], y @ w["value"], self.heads)
        x = x + self.leave(heads @ w["out"])
        return x + self.leave(F.gelu(self.enter(norm(x)) @ w["up"]) @ w["down"])


class Head(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return norm(x) @ self.weight


def loss_of(logits, targets):
    """The mean cross entropy over all tokens."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# %% [markdown]
# It needs something to read. A token is a character, and the model learns to predict the next one.

# %%
TEXT = """
a rank is alone with its part of the work, and it is alone until it sends. what it sends goes to another rank, which
has to be there and wait for it, or the two of them will wait for a long time. this is the first thing to learn about
sending: a message has two ends. the second thing is that every message costs time before its first byte has moved, and
more time for each byte after that. so we send few messages, and we send large ones, and we let them travel while we
work.

when all ranks need what one rank has, it is a broadcast. when one rank needs what all the others have, it is a gather.
when all of them need what all of them have, we gather round. each rank passes on to its right what came from its left,
and after as many steps as there are others, every rank has heard the whole story. no one stood in the middle, and no
one was asked to speak more than the rest. if they add on the way instead of keeping, it is a sum, and a sum of all that
was learned is what a model learns from.

a model that fits on one rank is a model that many could train. one that fits on none has to be cut: by its layers, so
that one rank begins what the next one ends; by its columns, so that all of them work on the same layer; by its data, so
that each of them sees another page of the book. then every rank has three kinds of neighbours, and with each of them it
speaks of something else. in the end they all have to agree on a single number, and it has to be the number that one
rank alone would have found, with more time and more memory than it has.
"""

LETTERS = sorted(set(TEXT))
TOKENS = torch.tensor([LETTERS.index(letter) for letter in TEXT])
CONFIG = {
    "vocabulary": len(LETTERS),
    "width": 32,
    "heads": 4,
    "layers": 4,
    "micro_batches": 2,
    "learning_rate": 0.5,
    "seed": 30,
}


def batches_of(steps, rows=8, length=32):
    """Pairs of inputs and targets; a target is the token that follows."""
    generator = torch.Generator().manual_seed(1)
    starts = torch.randint(len(TOKENS) - length, (steps, rows), generator=generator)
    windows = [TOKENS[one[:, None] + torch.arange(length + 1)] for one in starts]
    return [(window[:, :-1], window[:, 1:]) for window in windows]


print(f"{len(TOKENS)} tokens, a vocabulary of {len(LETTERS)}")

# %% [markdown]
# **Predict:** a model that guesses, with equal probabilities for all 29 characters, has a loss of ln 29 = 3.4. Near
# which loss does training begin?
#
# <details><summary>Well below: a random model knows something by chance</summary>
#
# No: its logits are random, so they are right no more often than a guess, and too sure where they are wrong.
# </details>
#
# <details><summary>A little above</summary>
#
# Yes: the first logits are random, and not zero. Where they are wrong that costs more than it gains where
# they are right.
# </details>
#
# <details><summary>Far above: random weights are confidently wrong</summary>
#
# No: with weights of this size the logits are around 1, so no probability is near 0 or 1.
# </details>

# %%
def step(weights, learning_rate):
    """A step of SGD."""
    with torch.no_grad():
        for weight in weights:
            weight -= learning_rate * weight.grad


def whole_model(config):
    layers = [Embed(initial_weight(config, "embedding"))]
    for i in range(config["layers"]):
        weights = {name: initial_weight(config, f"{i}.{name}") for name in BLOCK}
        layers.append(Block(weights, config["heads"]))
    return nn.Sequential(*layers, Head(initial_weight(config, "head")))


def train_alone(config, batches):
    """Train the whole model in one process; return the loss of each batch, before its step."""
    model, losses = whole_model(config), []
    for inputs, targets in batches:
        model.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        step(model.parameters(), config["learning_rate"])
        losses.append(loss.item())
    return losses


batches = batches_of(30)
alone = train_alone(CONFIG, batches)
shares = TOKENS.bincount() / len(TOKENS)
print(f"a guess: ln {len(LETTERS)} = {-torch.tensor(1 / len(LETTERS)).log():.2f}")
print(f"by how frequent each character is: {-(shares * shares.log()).sum():.2f}")
print(f"the first loss: {alone[0]:.1f}; below 2.7 in the end: {alone[-1] < 2.7}")

# %% [markdown]
# The first loss is a little above that of a guess. In the end the model knows more than how frequent each
# character is.
#
# Why plain SGD, when almost everyone uses AdamW? Adam divides a gradient by its typical size, so one that is twice
# as large makes for nearly the same step. With SGD every wrong factor shows in the next loss.
#
# ## Your pieces, in a group
#
# What you wrote in chapters 15, 25 and 26 talks to the whole world: `dist.get_rank()`, `dist.all_reduce(x)`,
# `dist.send(x, rank + 1)`. On the mesh each piece has to talk to one group. Its code can stay as it is if it finds,
# under the name `dist`, something that looks like `torch.distributed` and means the group. Write that:
#
# - `get_rank()` and `get_world_size()` count in the group, as `dist.get_rank(group)` does;
# - `all_reduce` gets `group=group`;
# - `send`, `isend`, `recv` and `irecv` take a *place in the group*. `dist.send(x, dst)` takes the rank in the
#   **world**, whatever the group; for a place there is `dist.send(x, group=group, group_dst=place)`, and for receiving
#   `group_src`.
#
# No exercise judges this cell, but the cells below try it.


# %%
def within(group):
    """torch.distributed as one group sees it: ranks are places in the group, and calls stay inside."""
    ### BEGIN SOLUTION
    seen = types.SimpleNamespace(**vars(dist))  # all else is as it was
    seen.get_rank = lambda: dist.get_rank(group)
    seen.get_world_size = lambda: dist.get_world_size(group)
    seen.all_reduce = partial(dist.all_reduce, group=group)
    seen.send = lambda x, place: dist.send(x, group=group, group_dst=place)
    seen.isend = lambda x, place: dist.isend(x, group=group, group_dst=place)
    seen.recv = lambda x, place: dist.recv(x, group=group, group_src=place)
    seen.irecv = lambda x, place: dist.irecv(x, group=group, group_src=place)
    return seen
    ### END SOLUTION


# %% [markdown]
# Here are the pieces with the group as an argument, in case you have not written one of them: $f$ and $g$ of chapter 26,
# `average_gradients` of chapter 15 (here every parameter has a gradient), and the order and the pipeline of chapter 25.
# (Under their old names, the grader would take them for answers to those exercises.)

# %%
def enter(x, group):
    """Pass x on; in backward, add up the gradients over the group."""
    return Enter.apply(x, group)


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return added_up(gradient, ctx.group), None


def added_up(x, group):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def leave(part, group):
    """Add up the parts over the group; in backward, pass the gradient on."""
    return Leave.apply(part, group)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        return added_up(part, group)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def average_in_group(module, group):
    """Every gradient becomes its mean over the group."""
    for p in module.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= dist.get_world_size(group)


def one_f_one_b(stage, stages, micro_batches):
    """The passes of a stage in the order of 1F1B."""
    behind, order = stages - stage - 1, []
    for i in range(micro_batches + behind):
        if i < micro_batches:
            order.append(("forward", i))
        if i >= behind:
            order.append(("backward", i - behind))
    return order


def pipeline_in_group(stage, order, inputs, targets, loss_fn, shape, group):
    """Run one's stage in this order; the stages are the ranks of the group."""
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    dtype = next(stage.parameters()).dtype
    in_flight, loss, outputs_sent, gradient_sent = {}, 0.0, {}, None
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, group=group, group_src=rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank == last:
                y = loss_fn(y, targets[i]) / len(targets)
                loss += y.item()
            else:
                outputs_sent[i] = dist.isend(y.detach(), group=group, group_dst=rank + 1)
            in_flight[i] = x, y
        else:
            x, y = in_flight.pop(i)
            gradient = None
            if rank < last:
                gradient = torch.empty(shape, dtype=dtype)
                dist.recv(gradient, group=group, group_src=rank + 1)
                outputs_sent.pop(i).wait()
            y.backward(gradient)
            if rank > 0:
                if gradient_sent is not None:
                    gradient_sent.wait()
                gradient_sent = dist.isend(x.grad, group=group, group_dst=rank - 1)
    if gradient_sent is not None:
        gradient_sent.wait()
    return loss if rank == last else None


# %% [markdown]
# The next cell looks for yours in your notebooks of those chapters, as chapter [19](19_backends.ipynb) did, and tries
# them on four ranks in two groups: ranks 0 and 2, and ranks 1 and 3. So the place in the group is never the rank in the
# world, except on rank 0. Each of yours that is right there replaces the given one.

# %%
def yours(chapter, name):
    """A definition from your notebook of another chapter; None if there is no such notebook."""
    places = (Path(f"{chapter}.ipynb"), Path("notebooks", f"{chapter}.ipynb"))
    path = next((place for place in places if place.is_file()), None)
    return path and Submission.from_file(path, [name]).defined(name)


def in_group(own):
    """A function of another chapter, with a group for one more argument."""

    def piece(*arguments):
        *arguments, group = arguments
        own.__globals__["dist"] = within(group)
        return own(*arguments)

    return piece


def pieces_tried(enter, leave, average_in_group, one_f_one_b, pipeline_in_group):
    """Whether the pieces give what they should, in groups of two."""
    rank = dist.get_rank()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    group, first = groups[rank % 2], rank < 2

    x = torch.ones(1, requires_grad=True)
    y = leave((rank + 1.0) * enter(x, group), group)
    y.sum().backward()
    total = 4.0 + 2 * (rank % 2)  # 1 + 3, or 2 + 4
    right = [(y.item(), x.grad.item()) == (total, total)]

    layer = nn.Linear(1, 1, bias=False)
    layer.weight.grad = torch.full((1, 1), float(rank))
    average_in_group(layer, group)
    right.append(layer.weight.grad.item() == 1.0 + rank % 2)

    stage = nn.Linear(1, 1, bias=False)
    nn.init.constant_(stage.weight, 2.0)
    rows = [torch.tensor([[row]]) for row in (1.0, 2.0, 6.0)]
    ends = (rows, None) if first else (None, rows)
    product = lambda output, target: (output * target).mean()
    order = one_f_one_b(0 if first else 1, 2, 3)
    loss = pipeline_in_group(stage, order, *ends, product, (1, 1), group)
    # the mean of 4x² over 1, 2 and 6, and of its derivative by one of the two weights
    right.append(loss is None if first else abs(loss - 4 * 41 / 3) < 1e-4)
    return all(right) and abs(stage.weight.grad.item() - 2 * 41 / 3) < 1e-4


def right_in_groups(pieces):
    tried = run(pieces_tried, 4, *pieces.values(), seconds=60, may_fail=True, seed=0)
    return tried.failure is None and all(tried)


pieces = {
    piece.__name__: piece for piece in (enter, leave, average_in_group, one_f_one_b, pipeline_in_group)
}
for name, chapter, original in (
    ("enter", "26_tensor_parallel", "f"),
    ("leave", "26_tensor_parallel", "g"),
    ("average_in_group", "15_data_parallel", "average_gradients"),
    ("one_f_one_b", "25_pipeline", "one_f_one_b_order"),
    ("pipeline_in_group", "25_pipeline", "run_pipeline"),
):
    own = yours(chapter, original)
    with_own = pieces | {name: own if name == "one_f_one_b" else own and in_group(own)}
    if own and right_in_groups(with_own):
        pieces = with_own
        print(f"{name:17} is your {original} of chapter {chapter[:2]}")
    else:
        print(f"{name:17} is the given one")
globals().update(pieces)

# %% [markdown]
# ## Put them together
#
# Before you write it, go through one step on paper, with $2 \times 2 \times 2$ and two micro-batches. A transformer
# block has $12 h^2$ weights. Its output has $A$ numbers for a micro-batch.
#
# For which weights does a rank have a gradient after its backward passes, and with which rank does it have to average
# them? And which of these three is sent most often in a step: activations along tp, activations along pp, or
# gradients along dp? (The record will tell, when it trains.)
#
# ## Exercise: train
#
# Train the model on `dp * tp * pp` ranks. Every rank calls `train` with the same arguments, and returns the same
# list: for each batch the **mean loss over all of its rows**, before its step, as a float. These are the losses of
# `train_alone`, to 1e-4.
#
# - `model_config` is a dictionary such as `CONFIG`. Stage $p$ has `layers // pp` consecutive layers; the first
#   stage has the embedding as well, and the last one the head. Rank $t$ has `heads // tp` heads, and the same share
#   of the columns of `up` and the rows of `down`. Embedding and head are whole on every rank of tp. Every division
#   comes out even.
# - `batches` is a list of pairs `(inputs, targets)` of shape (rows, length), with all rows on every rank. Rank $d$
#   works on `1/dp` of the rows, cut into `micro_batches` equally large micro-batches. What travels between stages has
#   the shape (rows of a micro-batch, length, width), and no message along pp may be larger.
# - After each batch, all weights take a step of SGD: `weight -= learning_rate * gradient`, with the gradient of the
#   mean loss over the batch.
# - Besides point-to-point calls, `new_group`, `all_reduce`, `broadcast`, `all_gather`, `reduce_scatter` and
#   `all_to_all` are allowed, so you can use other pieces than those above, such as ZeRO along dp, or another order
#   of passes.
# - The point is that no rank does another's work. Activations have to travel along tp and pp, and gradients along
#   dp, at least as much of them as that takes. And no rank may keep the whole model: a view of a weight keeps all of
#   it alive, while `clone()` of the view does not.
#
# `check` runs it on 1, 2 and 8 ranks. Begin with `check(train, world_sizes=[1])`. On 2 ranks there are three
# layouts, in each of which one dimension is 2. Each dimension has to work by itself: an answer that is wrong in one of
# these three earns at most half. Each layout is judged twice, by the loss of one batch, and by the losses of several
# batches divided by the first.

# %%
def train(model_config: dict, batches: list, dp: int, tp: int, pp: int) -> list[float]:
    """Train on a mesh of ranks; the loss of each batch."""
    ### BEGIN SOLUTION
    mesh = build_mesh(dp, tp, pp)
    d, t, p = (dist.get_rank(mesh[name]) for name in ("dp", "tp", "pp"))
    stage = my_stage(model_config, mesh["tp"], t, tp, p, pp)
    m, losses = model_config["micro_batches"], []
    for inputs, targets in batches:
        inputs, targets = (rows.chunk(dp)[d].chunk(m) for rows in (inputs, targets))
        stage.zero_grad()
        loss = pipeline_in_group(
            stage,
            one_f_one_b(p, pp, m),
            inputs if p == 0 else None,
            targets if p == pp - 1 else None,
            loss_of,
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        average_in_group(stage, mesh["dp"])
        step(stage.parameters(), model_config["learning_rate"])
        total = torch.tensor(loss or 0.0)  # only the last stage knows it
        dist.all_reduce(total, group=mesh["pp"])
        dist.all_reduce(total, group=mesh["dp"])
        losses.append(total.item() / dp)
    return losses


def my_stage(config, group, t, tp, p, pp):
    """The layers of stage p, and the t-th part of each."""
    borders = [lambda x: enter(x, group), lambda part: leave(part, group)]
    layers = [Embed(initial_weight(config, "embedding"))] if p == 0 else []
    per_stage = config["layers"] // pp
    for i in range(p * per_stage, (p + 1) * per_stage):
        weights = {}
        for name in BLOCK:
            dim = 0 if name in ("out", "down") else 1
            weights[name] = initial_weight(config, f"{i}.{name}").chunk(tp, dim)[t].clone()
        layers.append(Block(weights, config["heads"] // tp, *borders))
    if p == pp - 1:
        layers.append(Head(initial_weight(config, "head")))
    return nn.Sequential(*layers)
    ### END SOLUTION


train_works = check(train)
train_works

# %% [markdown]
# ## It trains
#
# Now it reads the text, on eight ranks.
#
# **Predict:** how far apart are the curves after 30 steps?
#
# <details><summary>Not at all: the same sums give the same bits</summary>
#
# No: the sums over columns, micro-batches and rows are added up in another order, and so rounded
# differently.
# </details>
#
# <details><summary>Less than 1e-4</summary>
#
# Yes: only roundings differ, and in 30 steps they stay small.
# </details>
#
# <details><summary>About 1e-2: each rank trains on less</summary>
#
# No: the step of all ranks together is that of the whole batch. Only roundings differ.
# </details>

# %%
LAYOUTS = ((2, 2, 2), (1, 4, 2))

if train_works:
    curves = {}
    for layout in LAYOUTS:
        together = run(train, 8, CONFIG, batches, *layout, seconds=300)
        curves[layout] = together[0]
        gap = max(abs(a - b) for a, b in zip(alone, together[0]))
        same_everywhere = all(losses == together[0] for losses in together)
        print("dp × tp × pp =", layout)
        print("  the same on all ranks:", same_everywhere)
        print(f"  those of one process to the last bit: {gap == 0}, to 1e-4: {gap < 1e-4}")
    figure, axes = plt.subplots(figsize=(6.5, 3))
    axes.plot(alone, lw=6, alpha=0.35, label="one process")
    for (layout, losses), line in zip(curves.items(), ("--", ":")):
        axes.plot(losses, ls=line, color="black", label="dp × tp × pp = " + " × ".join(map(str, layout)))
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    plt.show()

# %% tags=["claim"]
assert max(b - a for a, b in zip(alone, alone[1:])) > 0.2, "one process makes the same jumps"

# %% [markdown]
# Three curves look like one. They are not equal to the last bit: sums are added up in another order, and
# each step carries the difference on. (The jumps are not the mesh's fault, since one process makes the same
# ones: every step has different text, and plain SGD with so large a learning rate sometimes goes too far.)
#
# ### What it has learned
#
# Now let it train for longer, on four ranks with $tp = pp = 2$. `layers_after` remembers the layers that `train`
# makes on a rank. At the end we put their parts together, columns along tp and stages along pp, and let the whole
# model write, in one process, one character after another. What would it have written before it was trained?

# %% tags=["nbval-ignore-output"]
def layers_after(train, *arguments):
    """Train, and return the losses, and the weights of the layers that were made on this rank."""
    made = []
    for kind in (Embed, Block, Head):
        def remembered(self, *options, begin=kind.__init__):
            begin(self, *options)
            made.append(self)

        kind.__init__ = remembered
    losses = train(*arguments)
    return losses, [{name: w.detach() for name, w in layer.named_parameters()} for layer in made]


def put_together(config, ranks, tp):
    """The whole model, from the layers of ranks that are counted with dp = 1."""
    stages = [ranks[first : first + tp] for first in range(0, len(ranks), tp)]
    layers = []
    for parts in (part for stage in stages for part in zip(*stage)):  # of one layer, along tp
        if "weight" in parts[0]:  # whole on every rank
            layers.append((Head if layers else Embed)(parts[0]["weight"]))
            continue
        whole = {}
        for name in BLOCK:
            dim = 0 if name in ("out", "down") else 1
            whole[name] = torch.cat([part[f"weights.{name}"] for part in parts], dim)
        layers.append(Block(whole, config["heads"]))
    return nn.Sequential(*layers)


@torch.no_grad()
def write(model, begin, length):
    """Let a model go on with a text: each next character is drawn with its probability."""
    torch.manual_seed(2)
    tokens = [LETTERS.index(letter) for letter in begin]
    for _ in range(length):
        scores = model(torch.tensor([tokens[-32:]]))[0, -1]
        tokens.append(torch.multinomial((scores / 0.7).softmax(0), 1).item())
    return "".join(LETTERS[token] for token in tokens)


if train_works:
    longer = CONFIG | {"learning_rate": 0.3}
    trained = run(layers_after, 4, train, longer, batches_of(200), 1, 2, 2, seconds=280)
    print("before:", write(whole_model(CONFIG), "a rank ", 200), sep="\n", end="\n\n")
    print("after:", write(put_together(CONFIG, [made for _, made in trained], 2), "a rank ", 200), sep="\n")

# %% tags=["claim"]
assert trained[0][0][-1] < 2.3, "after 200 steps the model has learned more than 30 steps teach it"

# %% [markdown]
# The first text is noise. The second has words of what the model has read, and others that could be words: not bad
# for 1,552 characters and 51,000 weights, of which each rank kept about a quarter.
#
# ## One step on the timeline
#
# Here is one step on $2 \times 2 \times 2$ simulated ranks, on a timeline. A block takes 1 ms forward and 2 ms
# backward on each rank, and each stage has two blocks. A message takes 0.1 ms.
#
# The first stage is ranks 0 to 3, and the second is ranks 4 to 7. Who waits at the beginning, and for what? When do
# the two ranks of a tp group wait for each other?
#
# **Predict:** which ranks average their gradients first?
#
# <details><summary>The first stage: it began first</summary>
#
# No: it also ends last. Its last backward pass needs a gradient from the second stage.
# </details>
#
# <details><summary>The second stage</summary>
#
# Yes: gradients come back from there, so it is done with its last backward pass while the first stage still
# computes.
# </details>
#
# <details><summary>All at once, at the end of the step</summary>
#
# No: along dp a rank has partners in its own stage only, and need not wait for the other.
# </details>

# %%
def timed(seconds, *arguments):
    """Train, with blocks that take this time."""
    Block.seconds = seconds
    return train(*arguments)


if train_works:
    one_step = simulate(timed, 8, 0.001, CONFIG, batches[:1], 2, 2, 2, alpha=1e-4, beta=0)
    print(f"{1000 * one_step.seconds:.1f} ms, of which each rank computes {2 * 2 * (1 + 2)}")
    display(timeline(one_step))

# %% [markdown]
# Read it from left to right.
#
# - **0 to 2.9 ms.** The second stage waits for its first input: the pipeline fills (chapter 25). Messages along pp
#   are few, and each comes from the rank with the same $d$ and $t$.
# - **Short bars in pairs**, at ranks 0 and 1, 2 and 3, 4 and 5, 6 and 7: the all-reduces along tp, two in each block,
#   forward and backward. A rank can do nothing else meanwhile. Both ranks of a pair have the same work, so they
#   arrive at the same time and wait for nothing but the messages.
# - **5.6 to 10.6 ms.** The first stage has sent both micro-batches and waits for the first gradient. The second
#   stage turns round at once: forward, backward, forward, backward. That is 1F1B.
# - **After 18.3 ms**, ranks 4 to 7 are done with their backward passes and average gradients along dp, 4
#   with 6 and 5 with 7: the ranks that hold the same part of the same layers. The first stage is still
#   computing, so this costs nothing. Then they wait for it, to add up the loss.
# - **After 23.1 ms**, the first stage averages its gradients as well, and now everyone waits for it. A rank
#   of the first stage has 13 weights, the embedding and its part of six matrices in each of two blocks.
#   Each is an all-reduce of its own, with its own latency. A bucket (chapter 15) would make one of them
#   all, and with several buckets and hooks the first could start while backward is still running.
#
# Of the 26 ms a rank computes 12. Without any message, the bubble alone would make it 18 (chapter 25:
# $\frac{p-1}{m+p-1} = \frac{1}{3}$ of the time). The other 8 are messages that nothing hides.
#
# ## Who sends what to whom
#
# The record of a run knows the ranks of each call. If they differ in one coordinate, it is a call along that
# dimension.
#
# A rank has two of four blocks, and half of each. A block passes on $A = 2 \cdot 32 \cdot 32$ numbers for each of two
# micro-batches.
#
# **Predict:** along which dimension does a rank of the first stage send most bytes in a step, and along which least?
#
# <details><summary>Most along tp, least along pp</summary>
#
# Yes: tp takes four all-reduces for each block and micro-batch, and pp one message for each micro-batch.
# </details>
#
# <details><summary>Most along dp, least along pp</summary>
#
# No: gradients travel once a step, and here a rank has about 12 · 32² weights. Activations travel along tp
# 16 times.
# </details>
#
# <details><summary>Most along tp, least along dp</summary>
#
# No: the gradients of a rank's weights are more numbers than the activations of two micro-batches.
# </details>

# %%
def along(ranks, dp, tp):
    """The dimensions in which ranks differ."""
    places = [(rank // tp % dp, rank % tp, rank // tp // dp) for rank in ranks]
    return " and ".join(name for name, values in zip(("dp", "tp", "pp"), zip(*places)) if len(set(values)) > 1)


def sent_along(trace, rank, dp, tp):
    """Calls and bytes that a rank sends along each dimension; the loss, one number, is left out."""
    calls, nbytes = Counter(), Counter()
    for op in trace.operations[rank]:
        if op.kind in ("new_group", "recv") or trace.given(op) <= 1:
            continue
        name = along(trace.ranks_of(op), dp, tp)
        calls[name] += 1
        nbytes[name] += 4 * trace.sent(op)
    return calls, nbytes


def formulas(config, dp, tp, pp, tokens, e=4):
    """Bytes that a rank of the first stage sends in a step; tokens are those of a micro-batch."""
    h, m, layers = config["width"], config["micro_batches"], config["layers"] // pp
    activations = e * tokens * h
    ends = 1 if pp > 1 else 2  # the embedding, and the head if this is the last stage as well
    weights = e * (layers * 12 * h * h // tp + ends * config["vocabulary"] * h)
    return {
        "tp": m * layers * 4 * 2 * (tp - 1) / tp * activations,  # two all-reduces forward, two backward
        "pp": m * activations if pp > 1 else 0,
        "dp": 2 * (dp - 1) / dp * weights,
    }


if train_works:
    for layout in LAYOUTS:
        dp, tp, pp = layout
        trace = run(train, 8, CONFIG, batches[:1], *layout, seconds=60).trace
        calls, nbytes = sent_along(trace, 0, dp, tp)
        expected = formulas(CONFIG, *layout, tokens=8 // dp // CONFIG["micro_batches"] * 32)
        print("dp × tp × pp =", layout)
        for name in ("tp", "pp", "dp"):
            print(f"  along {name}: {nbytes[name]:7,} bytes in {calls[name]:2} calls; formula {expected[name]:9,.0f}")

# %% [markdown]
# The counts agree with the formulas, if your pieces send what chapters 15, 25 and 26 ask for. (`average_gradients`
# may make one more call along dp, with a number for each weight, to find out who has a gradient.) In 2 × 2 × 2, where
# every dimension connects two ranks, most bytes go along tp. The same is true of the calls: 16 along tp, four for
# each of two blocks and two micro-batches; one along dp for each of the 13 weights; 2 along pp.
#
# Now use the same formulas for a model of the size of Llama 3 70B (80 layers, $h$ = 8192, bfloat16, without its
# grouped queries) on 512 GPUs. A step takes 4 million tokens, and a micro-batch 8192, so the more replicas there are,
# the fewer micro-batches each of them has.

# %%
LARGE = {"width": 8192, "layers": 80, "vocabulary": 128_000}
for layout in ((16, 8, 4), (64, 8, 1), (64, 2, 4)):
    dp, tp, pp = layout
    nbytes = formulas(LARGE | {"micro_batches": 512 // dp}, *layout, tokens=8192, e=2)
    weights = 80 * 12 * 8192**2 / tp / pp / 1e9
    texts = ", ".join(f"{name} {nbytes[name] / 1e9:5.1f} GB" for name in ("tp", "pp", "dp"))
    print(f"dp × tp × pp = {str(layout):10}: {texts}; {weights:3.1f} billion weights on a rank")

# %% [markdown]
# Without pipeline stages, a rank has four times as many layers and a quarter of the micro-batches, and sends as much
# along tp as before. With $tp = 2$ it sends a seventh. Both have four times as many weights on a rank, and at 16
# bytes each for mixed precision with Adam (chapter 16), 8.1 billion weights take 130 GB: more than an H100's 80 GB,
# unless their state is sharded along dp.
#
# | dimension | what travels | how often | who waits | where it belongs |
# |---|---|---|---|---|
# | tp | activations of a micro-batch | 4 all-reduces for each block and micro-batch | the next product | inside a machine |
# | dp | gradients of a rank's own weights | once a step | nobody until the optimizer, if it overlaps with backward | between machines |
# | pp | activations of a micro-batch | once for each micro-batch and direction | the next stage, if the pipeline is empty | between machines |
#
# ## Sixty-four ranks, and another layout
#
# Now take eight nodes of eight ranks, and a model of eight layers. Our width is 32 where a real model has 8192. In
# chapter 26's ratio of communication to computation, $\frac{e(n-1)}{6h} \cdot \frac{F}{B}$, that is a factor of 256,
# and float32 in place of bfloat16 is another factor of 2. To keep the ratio, we take an H100 (989 TFLOP/s, 450 GB/s
# inside, 50 GB/s between nodes), make everything 1000 times slower, and its processor another 512 times. Messages of
# a real model are so long that latency hardly counts; here we set it to 0.
#
# Three ways to use the 64 ranks:
#
# - **A**: $2 \times 8 \times 4$, with each tp group on a node;
# - **B**: the same layout, but $t$ counts the *nodes*: the eight ranks of a tp group are on eight nodes, and all
#   ranks of one place $t$ are on the same;
# - **C**: $8 \times 2 \times 4$, with each tp group on a node.
#
# **Predict:** which is fastest, and which is slowest? (And by what factor? If A is not the fastest, what is
# still in its favour?)
#
# <details><summary>A is fastest, B is slowest</summary>
#
# No: B is slowest, but A sends more along tp than C. Its all-reduces have eight ranks, and each of its
# replicas has more tokens.
# </details>
#
# <details><summary>C is fastest, A is slowest</summary>
#
# No: B makes the same calls as A, and those along tp go over links of a ninth of the speed.
# </details>
#
# <details><summary>C is fastest, B is slowest</summary>
#
# Yes: C sends a seventh along tp of what A sends, and B sends as much as A, but from node to node.
# </details>

# %%
SLOWER = 1000
FLOPS = 989e12 / SLOWER / 512
INSIDE, BETWEEN = 450e9 / SLOWER, 50e9 / SLOWER
MORE = CONFIG | {"heads": 8, "layers": 8, "micro_batches": 8}
ACROSS = tuple(8 * (place % 8) + place // 8 for place in range(64))  # the ranks in the order in which they fill nodes
WAYS = {"A": ((2, 8, 4), ()), "B": ((2, 8, 4), ACROSS), "C": ((8, 2, 4), ())}


def nodes_of_eight(order):
    return Nodes(
        ranks_per_node=8,
        alpha_inside=0,
        beta_inside=1 / INSIDE,
        alpha_between=0,
        beta_between=1 / BETWEEN,
        links=8,
        order=order,
    )


def block_seconds(config, tp, tokens):
    """A forward pass of a block on one rank: two operations for each weight and token."""
    return 2 * 12 * config["width"] ** 2 * tokens / tp / FLOPS


if train_works:
    one_batch = batches_of(1, rows=64, length=16)
    for name, ((dp, tp, pp), order) in WAYS.items():
        tokens = 64 // dp // MORE["micro_batches"] * 16
        seconds = block_seconds(MORE, tp, tokens)
        computes = MORE["micro_batches"] * MORE["layers"] // pp * 3 * seconds
        cluster, ring = nodes_of_eight(order), {"all_reduce": "ring"}
        ran = simulate(timed, 64, seconds, MORE, one_batch, dp, tp, pp, cluster=cluster, algorithms=ring)
        weights = MORE["layers"] * 12 * MORE["width"] ** 2 // tp // pp
        node = {rank: place // 8 for place, rank in enumerate(order or range(64))}
        groups = {"tp": range(tp), "pp": range(0, 64, dp * tp), "dp": range(0, dp * tp, tp)}  # those of rank 0
        sends = []
        for axis, nbytes in formulas(MORE, dp, tp, pp, tokens).items():
            one_node = len({node[rank] for rank in groups[axis]}) == 1
            sends.append(f"{1000 * nbytes / (INSIDE if one_node else BETWEEN):.1f} along {axis}")
        print(f"{name}: {1000 * ran.seconds:4.1f} ms; {weights:,} weights of blocks on a rank")
        print(f"   it computes for {1000 * computes:.1f} ms, and sends for", ", ".join(sends))

# %% [markdown]
# Rank 0 sends for as long as the bytes of the formulas take at the bandwidth of the links in its group. The bubble
# stretches computing, and the messages along tp within it, by $\frac{11}{8}$: 8 micro-batches and 3 more to fill 4
# stages.
#
# B's all-reduces along tp go over links of a ninth of the speed, four times for each block and micro-batch, and
# nothing hides them: 18.4 ms instead of 2.0. B's messages along pp and dp stay inside a node, but that cannot make up
# for it. Of A's 13 ms, computing and tp take $(4.9 + 2.0) \cdot \frac{11}{8} = 9.5$, so there are only 3.5 to be
# saved. First of all, $t$ belongs inside the node.
#
# C's ranks compute as much as A's, but send a seventh along tp: with two ranks an all-reduce sends
# $2 \cdot \frac{1}{2}$ of the activations and not $2 \cdot \frac{7}{8}$, and with four times as many replicas each has a
# quarter of the tokens. C pays with gradients, of four times as many weights on a rank. This is the argument for A: a
# rank holds a quarter of the weights, of their gradients and of the optimizer's state. While the batch has rows
# enough for more replicas, **use as little tensor parallelism as memory allows**, and ask first whether ZeRO or FSDP
# (chapters [23](23_zero.ipynb) and [24](24_fsdp.ipynb)) along dp would do.
# [DeepSeek-V3](https://arxiv.org/abs/2412.19437) (section 3.2) was trained without tensor parallelism.
#
# Your mesh is that of
# [Megatron-LM](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py), whose docstring
# has the groups of 16 GPUs with $tp = 2$, $pp = 4$; compare them with `build_mesh(2, 2, 4)`. Llama 3 counts in the
# order [TP, CP, PP, DP] (section 3.3.2 of [the paper](https://arxiv.org/abs/2407.21783)): dp is outermost, because
# FSDP fetches weights ahead of time and so tolerates slow links best. In both, $t$ is innermost.
#
# ## What you can try
#
# `train` is yours, and `check(train)` says whether it is still right. Swap pieces:
#
# - ZeRO along dp: a reduce-scatter of all gradients, a step on a rank's own share, an all-gather of the
#   weights.
# - Your `vocab_parallel_cross_entropy` with a head that is cut by columns.
# - Sequence parallelism: `enter` gathers tokens and `leave` scatters sums, and $A / tp$ travels along pp.
# - Buckets, and all-reduces from hooks that begin while the last micro-batch goes backward.
# - A fourth dimension: your `ring_attention` along cp, or experts along ep (chapters
#   [27](27_context_parallel.ipynb) and [28](28_expert_parallel.ipynb)). `check` does not know these; compare the
#   losses with those of one process yourself.
#
# ## Summary
#
# - A rank has a coordinate for each way of cutting, and one group for each: the ranks that differ in this
#   coordinate only.
# - The dimensions know nothing of each other. $f$ and $g$ work inside a block, the pipeline passes on what comes
#   out of it, and gradients are averaged when both are done. So each piece could be written and tested alone.
# - Every rank's losses are those of one process. If they are not, ask which layouts go wrong, and whether the
#   *first* loss is right: it shows the forward pass, and the second one the gradients.
# - Activations go along tp, often, and the layer waits for them: it gets the fastest links. Gradients go
#   along dp, once a step. Activations also go along pp, rarely, but the pipeline has to be filled.
#
# **Where this is used:** in most large training runs, with more or fewer dimensions.
# [torchtitan](https://github.com/pytorch/torchtitan) composes the same dimensions from PyTorch's own parts, on a
# `DeviceMesh`, in code that you can now read.
#
# ### Check yourself
#
# <details><summary>All ranks of a tp group compute the embedding and the head, with the same numbers. Why do their gradients need no all-reduce along tp?</summary>
#
# The head's input is the same on all of them, and so is its gradient. What comes back to the embedding has been
# added up by the backward pass of enter, so it is whole and the same on all.
# </details>
#
# <details><summary>An input embedding and the head are often the same matrix. What does a pipeline then have to do in addition?</summary>
#
# The first and the last stage each have a copy, and a gradient that is a part of the whole. They have to add up the
# two before the step: a group of the first and the last rank of each pp group, for one matrix. Megatron-LM calls it
# the embedding group.
# </details>
#
# <details><summary>The gradient norm is to be clipped at 1. Which collectives does that take?</summary>
#
# The norm of the whole model's gradient: the sum of squares over a rank's own shards, added up along tp and
# pp, and not along dp, where gradients are equal after averaging. What all ranks of tp have a copy of,
# embedding and head, must count only once.
# </details>
#
# <details><summary>You double the number of GPUs and keep the batch. Which dimension do you double?</summary>
#
# With dp, each rank has half of the tokens for the same gradients, and at some point computing no longer hides them
# (chapter 16). With pp the bubble grows, unless the same batch is cut into more and smaller micro-batches. With tp
# more of the time goes into activations, and beyond the node their links are slow. At some point more GPUs stop
# helping; which dimension reaches it first depends on the model and the machine.
# </details>
#
# ## Looking back
#
# You began with a rank that knew its number, and a message with two ends. From `send` and `recv` you made a
# broadcast, a gather, a reduction, then the ring, in which nobody stands in the middle; you saw why a call hangs,
# and what it has to cost. With α and β you could say beforehand how long something takes. With trees, hierarchies
# and recovery from failures it became fit for real machines. Then the collectives became parts of something larger:
# gradients averaged while they are computed, a state in shards, layers gathered and let go, stages, columns, blocks
# of a sequence, experts, and fewer bytes where links are slow. In this chapter three of these ran at once, and gave
# the numbers that one process gives.
#
# One chapter is left, and it needs no mesh: the clinic of chapter [31](31_real_bugs.ipynb), with bugs that people have
# reported from real jobs. You now know enough to mend them.
#
# Where to go from here:
#
# - Read [torchtitan](https://github.com/pytorch/torchtitan) and [Megatron-LM](https://github.com/NVIDIA/Megatron-LM);
#   begin where they make their meshes.
# - The [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook) measures all these
#   layouts on up to 512 GPUs, and [How to Scale Your Model](https://jax-ml.github.io/scaling-book/) derives them
#   from the hardware.
# - Take your pieces to real GPUs: chapter [19](19_backends.ipynb) shows how. The calls stay the same; the tensors
#   have to be on each rank's GPU.
# - And tell someone who is where you were at chapter [00](00_ranks_and_groups.ipynb). Gather round.
