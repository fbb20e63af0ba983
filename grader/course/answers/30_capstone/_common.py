"""Right answers in pieces, of which a mistake gives some anew."""
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


def made(ranks, names):
    """Make the groups along each dimension of a tensor of ranks; return one's own by name."""
    mesh = {}
    for axis, name in enumerate(names):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh


def build_mesh(dp, tp, pp):
    return made(torch.arange(dp * tp * pp).view(pp, dp, tp), ("pp", "dp", "tp"))


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
    def backward(ctx, gradient):
        return added_up(gradient, ctx.group), None


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        return added_up(part, group)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Embed(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, tokens):
        return F.embedding(tokens, self.weight)


class Block(nn.Module):
    def __init__(self, weights, heads, group):
        super().__init__()
        self.weights = nn.ParameterDict(weights)
        self.heads, self.group = heads, group

    def forward(self, x):
        w, y = self.weights, Enter.apply(norm(x), self.group)
        heads = attention(y @ w["query"], y @ w["key"], y @ w["value"], self.heads)
        x = x + Leave.apply(heads @ w["out"], self.group)
        y = Enter.apply(norm(x), self.group)
        return x + Leave.apply(F.gelu(y @ w["up"]) @ w["down"], self.group)


class Head(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return norm(x) @ self.weight


def layers_of(p, pp, layers):
    return range(p * layers // pp, (p + 1) * layers // pp)


def heads_of(config, tp):
    return config["heads"] // tp


def stage_of(config, group, t, tp, p, pp):
    layers = [Embed(initial_weight(config, "embedding"))] if p == 0 else []
    for i in layers_of(p, pp, config["layers"]):
        weights = {}
        for name in BLOCK:
            dim = 0 if name in ("out", "down") else 1
            weights[name] = initial_weight(config, f"{i}.{name}").chunk(tp, dim)[t].clone()
        layers.append(Block(weights, heads_of(config, tp), group))
    if p == pp - 1:
        layers.append(Head(initial_weight(config, "head")))
    return nn.Sequential(*layers)


def one_f_one_b(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]


def peer(group, rank):
    """Name a rank of a group in a call."""
    return {"group_src": rank}, {"group_dst": rank}


def loss_of(logits, targets, micro_batches):
    """What a micro-batch adds to the loss of all, and what its backward pass begins with."""
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / micro_batches
    return loss.item(), loss


def pipeline(stage, inputs, targets, shape, group):
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    from_left, to_left = peer(group, rank - 1)
    from_right, to_right = peer(group, rank + 1)
    in_flight, loss, outputs_sent, gradient_sent = {}, 0.0, {}, None
    for what, i in one_f_one_b(rank, last + 1, len(inputs)):
        if what == "forward":
            x = torch.empty(shape) if rank else inputs[i]
            if rank > 0:
                dist.recv(x, group=group, **from_left)
                x.requires_grad_()
            y = stage(x)
            if rank == last:
                share, y = loss_of(y, targets[i], len(targets))
                loss += share
            else:
                outputs_sent[i] = dist.isend(y.detach(), group=group, **to_right)
            in_flight[i] = x, y
        else:
            x, y = in_flight.pop(i)
            gradient = None
            if rank < last:
                gradient = torch.empty(shape)
                dist.recv(gradient, group=group, **from_right)
                outputs_sent.pop(i).wait()
            y.backward(gradient)
            if rank > 0:
                if gradient_sent is not None:
                    gradient_sent.wait()
                gradient_sent = dist.isend(x.grad, group=group, **to_left)
    if gradient_sent is not None:
        gradient_sent.wait()
    return loss


def clear(stage):
    stage.zero_grad()


def averaged(stage, mesh):
    for p in stage.parameters():
        dist.all_reduce(p.grad, group=mesh["dp"])
        p.grad /= dist.get_world_size(mesh["dp"])


@torch.no_grad()
def step(stage, learning_rate):
    for weight in stage.parameters():
        weight -= learning_rate * weight.grad


def told(loss, mesh):
    """Return the loss of the batch, of which a rank of the last stage knows its part."""
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item() / dist.get_world_size(mesh["dp"])


def train(model_config, batches, dp, tp, pp):
    mesh = build_mesh(dp, tp, pp)
    d, t, p = (dist.get_rank(mesh[name]) for name in ("dp", "tp", "pp"))
    stage = stage_of(model_config, mesh["tp"], t, tp, p, pp)
    losses = []
    for batch in batches:
        inputs, targets = (x.chunk(dp)[d].chunk(model_config["micro_batches"]) for x in batch)
        clear(stage)
        shape = (*inputs[0].shape, model_config["width"])
        loss = pipeline(stage, inputs, targets, shape, mesh["pp"])
        averaged(stage, mesh)
        step(stage, model_config["learning_rate"])
        losses.append(told(loss, mesh))
    return losses
