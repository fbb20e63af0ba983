"""What the mistakes of this chapter share: a wrapper that is right, in pieces."""
import torch
import torch.distributed as dist
from torch import nn


class Gather(torch.autograd.Function):
    """The whole weight of a shard; in backward, the shard of its gradient."""

    @staticmethod
    def forward(ctx, shard, owner):
        ctx.shard, ctx.owner = shard, owner
        return owner.weight_in_forward(shard)

    @staticmethod
    def backward(ctx, gradient):
        ctx.owner.free(ctx.shard)
        return ctx.owner.reduce(ctx.shard, gradient), None


class ShardedModule(nn.Module):
    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        self.shapes = {}  # of the whole weights, by shard
        self.gathered = {}  # the weights that backward needs, by shard
        for layer in self.layers():
            own = dict(layer.named_parameters(recurse=False))
            for name, p in own.items():
                self.broadcast(p)
                if self.is_sharded(p):
                    shard = nn.Parameter(self.shard(p.data), p.requires_grad)
                    self.shapes[shard] = p.shape
                    setattr(layer, name, shard)
            if own:
                layer.forward = self.wrap(layer, layer.forward)

    def layers(self):
        return self.module.modules()

    def broadcast(self, p):
        dist.broadcast(p.data, 0)

    def is_sharded(self, p):
        return p.numel() > 128

    def shard(self, whole):
        return self.row(whole).chunk(dist.get_world_size())[dist.get_rank()].clone()

    def row(self, whole):
        return nn.functional.pad(whole.flatten(), (0, -whole.numel() % dist.get_world_size()))

    def gather(self, shard, dtype):
        mine, shape = shard.detach().to(dtype or shard.dtype), self.shapes[shard]
        row = mine.new_empty(dist.get_world_size() * len(mine))
        dist.all_gather_into_tensor(row, mine)
        return row[: shape.numel()].view(shape)

    def weight(self, shard):
        return self.gather(shard, self.compute_dtype)

    def weight_in_forward(self, shard):
        return self.weight(shard)

    def weight_in_backward(self, shard):
        if shard not in self.gathered:
            self.gathered[shard] = self.weight(shard)
        return self.gathered[shard]

    def weight_in_state(self, shard):
        return self.gather(shard, None)

    def free(self, shard):
        self.gathered.pop(shard, None)

    def reduce(self, shard, gradient):
        return self.average(self.reduce_scatter(self.row(gradient.to(shard.dtype))))

    def reduce_scatter(self, row):
        mine = row.new_empty(len(row) // dist.get_world_size())
        dist.reduce_scatter_tensor(mine, row)
        return mine

    def average(self, total):
        return total / dist.get_world_size()

    def cast(self, value):
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.compute_dtype) if self.compute_dtype and floating else value

    def cast_input(self, value):
        return self.cast(value)

    def cast_small(self, p):
        return self.cast(p)

    def wrap(self, layer, compute):
        def forward(*inputs):
            own, shards = dict(layer._parameters), {}
            for name, p in layer.named_parameters(recurse=False):
                if p in self.shapes:
                    weight = Gather.apply(p, self)
                    shards[weight.untyped_storage().data_ptr()] = p
                else:
                    weight = self.cast_small(p)
                layer._parameters[name] = weight

            def pack(tensor):
                return self.pack(tensor, shards)

            with torch.autograd.graph.saved_tensors_hooks(pack, self.unpack):
                result = self.compute(layer, compute, map(self.cast_input, inputs))
            layer._parameters.update(own)
            return result

        return forward

    def pack(self, tensor, shards):
        shard = shards.get(tensor.untyped_storage().data_ptr())
        view = tensor.size(), tensor.stride(), tensor.storage_offset()
        return tensor if shard is None else (shard, view)

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        shard, view = packed
        return self.weight_in_backward(shard).as_strided(*view)

    def compute(self, layer, compute, inputs):
        return compute(*inputs)

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish_gradient_synchronization(self):
        for p in self.parameters():
            if p not in self.shapes and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad.copy_(self.average(p.grad))

    def full_state_dict(self):
        state = dict(self.module.state_dict())
        for name, p in self.module.named_parameters():
            if p in self.shapes:
                state[name] = self.weight_in_state(p)
        return state
