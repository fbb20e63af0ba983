# exercise: ShardedAdamW
# diagnosis: wrong_value
# hint: as few digits as float32 holds
# or: ALL = True
import torch
import torch.distributed as dist

#: Whether gradients and weights travel in float32, too.
ALL = False


class ShardedAdamW:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.options = lr, betas, eps, weight_decay
        self.size = -(-sum(p.numel() for p in self.params) // dist.get_world_size())
        self.m, self.v = torch.zeros(2, self.size)
        self.steps = [0] * len(self.params)

    def row(self, tensors):
        row = torch.cat([tensor.flatten() for tensor in tensors])
        row = torch.nn.functional.pad(row, (0, dist.get_world_size() * self.size - len(row)))
        return row.float() if ALL else row

    @torch.no_grad()
    def step(self):
        n, rank = dist.get_world_size(), dist.get_rank()
        mine = torch.tensor([p.grad is not None for p in self.params]).to(torch.uint8)
        flags = [torch.empty_like(mine) for _ in range(n)]
        dist.all_gather(flags, mine)
        there = torch.stack(flags).any(0).tolist()
        gradients = self.row([p.new_zeros(p.shape) if p.grad is None else p.grad for p in self.params])
        mean = gradients[: self.size].clone()
        dist.reduce_scatter_tensor(mean, gradients)
        mean /= n
        weights = self.row([p.detach() for p in self.params])
        mine = weights[rank * self.size : (rank + 1) * self.size].clone()
        lr, (beta1, beta2), eps, weight_decay = self.options
        start = -rank * self.size
        for i, p in enumerate(self.params):
            part = slice(max(start, 0), max(min(start + p.numel(), self.size), 0))
            start += p.numel()
            if not there[i]:
                continue
            self.steps[i] += 1
            w, g, m, v = mine[part], mean[part], self.m[part], self.v[part]
            w *= 1 - lr * weight_decay
            m.lerp_(g.to(m.dtype), 1 - beta1)
            v.mul_(beta2).add_(g * g * (1 - beta2))
            root = (v / (1 - beta2 ** self.steps[i])).sqrt() + eps
            w -= lr * (m / (1 - beta1 ** self.steps[i])) / root
        dist.all_gather_into_tensor(weights, mine)
        start = 0
        for p in self.params:
            p.copy_(weights[start : start + p.numel()].view_as(p))
            start += p.numel()

    def zero_grad(self):
        for p in self.params:
            p.grad = None
