# exercise: FullySharded
# diagnosis: exception
# hint: without a dot
from functools import partial

import torch
import torch.distributed as dist
from torch import nn


def row_of(whole):
    """A whole weight or gradient as a row, padded so that n divides its length."""
    return nn.functional.pad(whole.flatten(), (0, -whole.numel() % dist.get_world_size()))


def weight_of(mine, shape):
    """The whole weight of this shape, of which each rank has a shard."""
    row = mine.new_empty(dist.get_world_size() * len(mine))
    dist.all_gather_into_tensor(row, mine)
    return row[: shape.numel()].view(shape)


class Gathered(torch.autograd.Function):
    """The whole weight, from its shard; and in backward the other way round."""

    @staticmethod
    def forward(ctx, shard, shape, dtype=None):
        """Return the whole weight. (The dtype is for the second step.)"""
        ctx.own = shard.dtype
        return weight_of(shard.detach().to(dtype or shard.dtype), shape)

    @staticmethod
    def backward(ctx, gradient):
        """Return this rank's shard of the mean gradient, and None for the other arguments."""
        n, row = dist.get_world_size(), row_of(gradient.to(ctx.own))
        mean = row.new_empty(len(row) // n)
        dist.reduce_scatter_tensor(mean, row)
        return mean / n, None, None



class FullySharded(nn.Module):
    """Trains a model of which every rank holds a shard, and gathers one layer at a time."""

    def __init__(self, module: nn.Module, compute_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        self.shapes = {}  # of the whole parameters, by shard
        self.again = {}  # what backward has gathered and still needs, by shard
        for full_name, _ in list(module.named_parameters()):
            parent, leaf = full_name.rsplit(".", 1)
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

    def _around(self, layer, compute):
        """A forward for the layer: it gathers, lets the old forward compute, and frees."""
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

    def forward(self, *inputs):
        """What the module itself gives."""
        return self.module(*inputs)

    def finish_gradient_synchronization(self) -> None:
        """Average the gradients that backward has left as they were."""
        for p in self.parameters():
            if p not in self.shapes and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    def full_state_dict(self) -> dict:
        """The module's state_dict, with whole parameters; all ranks call it."""
        state = dict(self.module.state_dict())
        for name, p in self.module.named_parameters():
            if p in self.shapes:
                state[name] = weight_of(p.detach(), self.shapes[p])
        return state
