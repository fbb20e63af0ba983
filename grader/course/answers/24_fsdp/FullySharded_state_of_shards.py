# exercise: FullySharded
# diagnosis: wrong_shape
# hint: every weight is whole
import torch
import torch.distributed as dist
from torch import nn


class Gathered(torch.autograd.Function):
    """The whole of a parameter, from its shard; and in backward the other way round."""

    @staticmethod
    def forward(ctx, shard, owner):
        """Return the whole parameter."""
        ctx.shard, ctx.owner = shard, owner
        return owner._gather(shard, owner.compute_dtype)

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradient of the shard, and None for the other argument."""
        return ctx.owner._reduce(ctx.shard, gradient), None


class FullySharded(nn.Module):
    """Trains a model of which every rank holds a shard, and gathers one layer at a time."""

    def __init__(self, module: nn.Module, compute_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        self.shapes = {}  # of the whole parameters, by shard
        self.again = {}  # what backward has gathered and still needs, by shard
        for layer in module.modules():
            own = dict(layer.named_parameters(recurse=False))
            for name, p in own.items():
                dist.broadcast(p.data, 0)
                if p.numel() > 128:
                    mine = self._row(p.data).chunk(dist.get_world_size())[dist.get_rank()]
                    shard = nn.Parameter(mine.clone(), p.requires_grad)
                    self.shapes[shard] = p.shape
                    setattr(layer, name, shard)
            if own:
                layer.forward = self._around(layer, layer.forward)

    def _row(self, whole):
        """A whole parameter or gradient as a row whose length n divides."""
        return nn.functional.pad(whole.flatten(), (0, -whole.numel() % dist.get_world_size()))

    def _gather(self, shard, dtype):
        """The whole of a shard's parameter, in a dtype."""
        mine, shape = shard.detach().to(dtype or shard.dtype), self.shapes[shard]
        row = mine.new_empty(dist.get_world_size() * len(mine))
        dist.all_gather_into_tensor(row, mine)
        return row[: shape.numel()].view(shape)

    def _reduce(self, shard, gradient):
        """The shard's gradient, of the whole gradients of all ranks."""
        self.again.pop(shard, None)
        mean = torch.empty_like(shard)
        dist.reduce_scatter_tensor(mean, self._row(gradient.to(shard.dtype)))
        return mean / dist.get_world_size()

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
                self.again[shard] = self._gather(shard, self.compute_dtype)
            return self.again[shard].as_strided(*view)

        def forward(*inputs):
            own, shards = dict(layer._parameters), {}
            for name, p in layer.named_parameters(recurse=False):
                whole = Gathered.apply(p, self) if p in self.shapes else cast(p)
                layer._parameters[name] = whole
                if p in self.shapes:
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
        return state
