# exercise: train
# diagnosis: wrong_type
# hint: one float for each batch
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

BLOCK = ("query", "key", "value", "out", "up", "down")


def initial_weight(config, name):
    h, v = config["width"], config["vocabulary"]
    shapes = {"embedding": (v, h), "up": (h, 4 * h), "down": (4 * h, h), "head": (h, v)}
    rows, columns = shapes.get(name.split(".")[-1], (h, h))
    generator = torch.Generator().manual_seed(config["seed"] + zlib.crc32(name.encode()))
    return torch.randn(rows, columns, generator=generator) * h**-0.5


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def attention(q, k, v, heads):
    parts = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)


class Embed(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, tokens):
        return F.embedding(tokens, self.weight)


class Block(nn.Module):
    def __init__(self, weights, heads, enter, leave):
        super().__init__()
        self.weights = nn.ParameterDict(weights)
        self.heads, self.enter, self.leave = heads, enter, leave

    def forward(self, x):
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
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def added_up(x, group):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad, ctx.group), None


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        return added_up(part, group)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def enter(x, group):
    return Enter.apply(x, group)


def leave(part, group):
    return Leave.apply(part, group)


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]


def run_pipeline(stage, order, inputs, targets, loss_fn, shape, group):
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


def average_gradients(module, group):
    for p in module.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= dist.get_world_size(group)


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    d, t, p = (dist.get_rank(mesh[name]) for name in ("dp", "tp", "pp"))
    per_stage = model_config["layers"] // pp
    layers = []
    if p == 0:
        layers.append(Embed(initial_weight(model_config, "embedding")))
    for i in range(p * per_stage, (p + 1) * per_stage):
        shards = {}
        for name in BLOCK:
            whole = initial_weight(model_config, f"{i}.{name}")
            dim = 0 if name in ("out", "down") else 1
            shards[name] = whole.chunk(tp, dim)[t].clone()
        borders = [lambda x: enter(x, mesh["tp"]), lambda y: leave(y, mesh["tp"])]
        layers.append(Block(shards, model_config["heads"] // tp, *borders))
    if p == pp - 1:
        layers.append(Head(initial_weight(model_config, "head")))
    stage = nn.Sequential(*layers)
    m, losses = model_config["micro_batches"], []
    for inputs, targets in batches:
        inputs, targets = (x.chunk(dp)[d].chunk(m) for x in (inputs, targets))
        for weight in stage.parameters():
            weight.grad = None
        loss = run_pipeline(
            stage,
            one_f_one_b_order(p, pp, m),
            inputs if p == 0 else None,
            targets if p == pp - 1 else None,
            loss_of,
            (*inputs[0].shape, model_config["width"]),
            mesh["pp"],
        )
        average_gradients(stage, mesh["dp"])
        with torch.no_grad():
            for weight in stage.parameters():
                weight -= model_config["learning_rate"] * weight.grad
        total = torch.tensor(loss or 0.0)
        dist.all_reduce(total, group=mesh["pp"])
        dist.all_reduce(total, group=mesh["dp"])
        losses.append(total / dp)
    return losses
