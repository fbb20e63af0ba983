# exercise: FullySharded
# diagnosis: none
import torch
import torch.distributed as dist
from torch import nn


class Layer(torch.autograd.Function):
    """A layer that keeps its inputs only: backward gathers the weights and computes it again."""

    @staticmethod
    def forward(ctx, owner, layer, count, *tensors):
        ctx.owner, ctx.layer, ctx.count = owner, layer, count
        ctx.save_for_backward(*tensors)
        whole = owner.wholes(tensors[count:])
        return owner.compute(layer, whole, tensors[:count])

    @staticmethod
    def backward(ctx, gradient):
        count, owner = ctx.count, ctx.owner
        inputs = [
            x.detach().requires_grad_(x.is_floating_point()) for x in ctx.saved_tensors[:count]
        ]
        parameters = ctx.saved_tensors[count:]
        with torch.enable_grad():
            whole = [w.detach().requires_grad_() for w in owner.wholes(parameters)]
            output = owner.compute(ctx.layer, whole, inputs)
        leaves = [x for x in inputs if x.requires_grad] + whole
        found = list(torch.autograd.grad(output, leaves, gradient, allow_unused=True))
        del output, leaves, whole
        of_inputs = [found.pop(0) if x.requires_grad else None for x in inputs]
        of_parameters = [owner.shared(p, found.pop(0)) for p in parameters]
        return None, None, None, *of_inputs, *of_parameters


class FullySharded(nn.Module):
    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        self.shape = {}
        for layer in module.modules():
            names = [name for name, _ in layer.named_parameters(recurse=False)]
            if not names:
                continue
            for name in names:
                p = getattr(layer, name)
                dist.broadcast(p.data, src=0)
                if p.numel() > 128:
                    n, r = dist.get_world_size(), dist.get_rank()
                    row = torch.cat([p.data.flatten(), p.data.new_zeros(-p.numel() % n)])
                    shard = nn.Parameter(row.view(n, -1)[r].clone())
                    self.shape[id(shard)] = p.shape
                    setattr(layer, name, shard)
            layer.plain_forward = layer.forward
            layer.forward = self.replaced(layer, names)

    def replaced(self, layer, names):
        def forward(*inputs):
            parameters = [getattr(layer, name) for name in names]
            return Layer.apply(self, layer, len(inputs), *inputs, *parameters)

        layer.names = names
        return forward

    def compute(self, layer, whole, inputs):
        kept = [layer._parameters[name] for name in layer.names]
        for name, w in zip(layer.names, whole):
            layer._parameters[name] = self.cast(w)
        output = layer.plain_forward(*[self.cast(x) for x in inputs])
        for name, p in zip(layer.names, kept):
            layer._parameters[name] = p
        return output

    def cast(self, x):
        return x.to(self.compute_dtype) if self.compute_dtype and x.is_floating_point() else x

    def whole(self, p, dtype):
        n, mine = dist.get_world_size(), p.detach().to(dtype)
        row = mine.new_empty(n * mine.numel())
        dist.all_gather_into_tensor(row, mine)
        shape = self.shape[id(p)]
        return row[: shape.numel()].view(shape)

    def wholes(self, parameters):
        return [
            self.whole(p, self.compute_dtype or p.dtype) if id(p) in self.shape else p
            for p in parameters
        ]

    def shared(self, p, gradient):
        if id(p) not in self.shape:
            return gradient
        n = dist.get_world_size()
        row = gradient.to(p.dtype).flatten() / n
        row = torch.cat([row, row.new_zeros(-len(row) % n)])
        mine = torch.empty_like(p)
        dist.reduce_scatter_tensor(mine, row)
        return mine

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish_gradient_synchronization(self):
        small = [p for p in self.parameters() if id(p) not in self.shape]
        if small:
            flat = torch.cat([p.grad.flatten() for p in small])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
            for p, part in zip(small, flat.split([p.numel() for p in small])):
                p.grad.copy_(part.view_as(p))

    def full_state_dict(self):
        parameters = dict(self.module.named_parameters())
        return {
            name: self.whole(parameters[name], value.dtype)
            if id(parameters.get(name)) in self.shape
            else value.clone()
            for name, value in self.module.state_dict().items()
        }
