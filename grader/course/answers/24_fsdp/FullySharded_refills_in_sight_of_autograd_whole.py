# exercise: FullySharded
# diagnosis: exception
# hint: write into its .data
import torch
import torch.distributed as dist
from torch import nn


class FullySharded(nn.Module):
    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module = module
        self.cd = compute_dtype
        self.meta = {}
        self.n, self.r = dist.get_world_size(), dist.get_rank()
        for layer in module.modules():
            names = [k for k, p in layer._parameters.items() if p is not None]
            if not names:
                continue
            for k in names:
                p = layer._parameters[k]
                dist.broadcast(p.data, 0)
                if p.numel() > 128:
                    size = -(-p.numel() // self.n)
                    flat = torch.zeros(size * self.n, dtype=p.dtype)
                    flat[: p.numel()] = p.data.flatten()
                    shard = nn.Parameter(
                        flat[self.r * size : (self.r + 1) * size].clone(),
                        requires_grad=p.requires_grad,
                    )
                    self.meta[shard] = p.shape
                    layer._parameters[k] = shard
            layer.forward = self.wrap(layer, layer.forward, names)

    def fill(self, row, shard):
        row.untyped_storage().resize_(row.numel() * row.element_size())
        dist.all_gather_into_tensor(row, shard.detach().to(row.dtype))

    def wrap(self, layer, old, names):
        def cast(x):
            if self.cd and isinstance(x, torch.Tensor) and x.is_floating_point():
                return x.to(self.cd)
            return x

        def forward(*args):
            own = {k: layer._parameters[k] for k in names}
            rows = []
            for k, p in own.items():
                if p in self.meta:
                    shape = self.meta[p]
                    row = torch.empty(len(p) * self.n, dtype=self.cd or p.dtype)
                    self.fill(row, p)
                    w = row[: shape.numel()].view(shape).detach().requires_grad_(p.requires_grad)
                    if w.requires_grad:
                        w.register_post_accumulate_grad_hook(
                            lambda w, row=row, p=p: self.reduce(w, row, p)
                        )
                    layer._parameters[k] = w
                    rows.append((row, p))
                else:
                    layer._parameters[k] = cast(p)
            out = old(*map(cast, args))
            layer._parameters.update(own)
            for row, _ in rows:
                row.untyped_storage().resize_(0)
            if out.requires_grad:

                def again(grad):
                    for row, p in rows:
                        self.fill(row, p)

                out.register_hook(again)
            return out

        return forward

    def reduce(self, w, row, p):
        g = torch.zeros(len(p) * self.n, dtype=p.dtype)
        g[: w.numel()] = w.grad.flatten()
        w.grad = None
        row.untyped_storage().resize_(0)
        mine = torch.empty_like(p)
        dist.reduce_scatter_tensor(mine, g)
        mine /= self.n
        p.grad = mine if p.grad is None else p.grad + mine

    def forward(self, *args):
        return self.module(*args)

    def finish_gradient_synchronization(self):
        for p in self.parameters():
            if p not in self.meta and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= self.n

    def full_state_dict(self):
        d = dict(self.module.state_dict())
        for k, p in self.module.named_parameters():
            if p in self.meta:
                shape = self.meta[p]
                row = torch.empty(len(p) * self.n, dtype=p.dtype)
                dist.all_gather_into_tensor(row, p.detach())
                d[k] = row[: shape.numel()].view(shape)
        return d
