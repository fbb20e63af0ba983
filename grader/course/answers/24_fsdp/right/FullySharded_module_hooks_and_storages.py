# exercise: FullySharded
# diagnosis: none
import torch
import torch.distributed as dist
from torch import nn


class FullySharded(nn.Module):
    """Hooks of modules; the whole weight keeps its storage object, which is emptied and refilled."""

    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module, self.dtype = module, compute_dtype
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self.wholes = {}
        for layer in list(module.modules()):
            small, large = [], []
            for name, p in list(layer.named_parameters(recurse=False)):
                dist.broadcast(p.data, 0)
                if p.numel() > 128:
                    large.append(self._shard(layer, name, p))
                else:
                    small.append((name, p))
            if small or large:
                layer.register_forward_pre_hook(self._before_forward(large, small))
                layer.register_forward_hook(self._after_forward(large, small))

    def _shard(self, layer, name, p):
        size = -(-p.numel() // self.n)
        row = torch.zeros(self.n * size, dtype=p.dtype)
        row[: p.numel()] = p.data.flatten()
        shard = nn.Parameter(row[self.rank * size : (self.rank + 1) * size].clone())
        shard.whole_shape = p.shape
        layer.register_parameter(name, shard)
        return name, shard

    def _fill(self, whole, shard):
        mine = shard.detach().to(whole.dtype)
        pieces = [torch.empty_like(mine) for _ in range(self.n)]
        dist.all_gather(pieces, mine)
        whole.untyped_storage().resize_(whole.numel() * whole.element_size())
        whole.data.flatten().copy_(torch.cat(pieces)[: whole.numel()])

    def _before_forward(self, large, small):
        def hook(layer, inputs):
            for name, shard in large:
                whole = torch.empty(shard.whole_shape, dtype=self.dtype or shard.dtype)
                self._fill(whole, shard)
                whole.requires_grad_()
                whole.register_hook(self._ready(shard, whole.detach()))
                self.wholes[shard] = whole
                layer._parameters[name] = whole
            for name, p in small:
                layer._parameters[name] = self._cast(p)
            return tuple(self._cast(x) for x in inputs)

        return hook

    def _after_forward(self, large, small):
        def hook(layer, inputs, output):
            for name, shard in large:
                whole = self.wholes.pop(shard)
                whole.untyped_storage().resize_(0)
                layer._parameters[name] = shard
                if output.requires_grad:
                    output.register_hook(lambda _, s=shard, w=whole.detach(): self._fill(w, s))
            for name, p in small:
                layer._parameters[name] = p

        return hook

    def _ready(self, shard, whole):
        return lambda gradient: self._reduced(shard, whole, gradient)

    def _reduced(self, shard, whole, gradient):
        whole.untyped_storage().resize_(0)
        size = shard.numel()
        flat = torch.zeros(self.n * size, dtype=shard.dtype)
        flat[: gradient.numel()] = gradient.flatten()
        mean = torch.empty_like(shard.data)
        dist.reduce_scatter(mean, list(flat.split(size)))
        mean /= self.n
        shard.grad = mean if shard.grad is None else shard.grad + mean

    def _cast(self, x):
        if self.dtype is None or not torch.is_tensor(x) or not x.dtype.is_floating_point:
            return x
        return x.to(self.dtype)

    def forward(self, *inputs):
        return self.module(*inputs)

    def finish_gradient_synchronization(self):
        for p in self.module.parameters():
            if not hasattr(p, "whole_shape") and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad.div_(self.n)

    def full_state_dict(self):
        full = {}
        parameters = dict(self.module.named_parameters())
        for name, value in self.module.state_dict().items():
            p = parameters.get(name)
            if p is not None and hasattr(p, "whole_shape"):
                value = torch.empty(p.whole_shape, dtype=p.dtype)
                self._fill(value, p)
            full[name] = value
        return full
