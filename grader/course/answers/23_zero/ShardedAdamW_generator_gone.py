# exercise: ShardedAdamW
# diagnosis: exception
# hint: can be gone through only once
# params is gone through twice, and it may be a generator.
import torch
import torch.distributed as dist


class ShardedAdamW:
    def __init__(self, params, lr, betas, eps, weight_decay):
        numel = sum(p.numel() for p in dict.fromkeys(params) if p.requires_grad)
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.lr, self.betas, self.eps = lr, betas, eps
        self.weight_decay = weight_decay
        n, rank = dist.get_world_size(), dist.get_rank()
        self.size = -(-numel // n)
        self.shard = slice(rank * self.size, (rank + 1) * self.size)
        self.m, self.v = self.params[0].detach().new_zeros(2, self.size)
        self.steps = [0] * len(self.params)

    def _flat(self, tensors):
        flat = self.params[0].detach().new_zeros(dist.get_world_size() * self.size)
        start = 0
        for p, tensor in zip(self.params, tensors):
            if tensor is not None:
                flat[start : start + p.numel()] = tensor.flatten()
            start += p.numel()
        return flat

    def _exists(self):
        mine = torch.tensor([p.grad is not None for p in self.params]).to(torch.uint8)
        flags = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(flags, mine)
        return torch.stack(flags).any(0).tolist()

    @torch.no_grad()
    def step(self):
        exists = self._exists()
        mean = torch.empty_like(self.m)
        dist.reduce_scatter_tensor(mean, self._flat([p.grad for p in self.params]))
        mean /= dist.get_world_size()
        weights = self._flat(self.params)
        mine = weights[self.shard].clone()
        start = -self.shard.start
        for i, p in enumerate(self.params):
            first, last = max(start, 0), max(min(start + p.numel(), self.size), 0)
            start += p.numel()
            if exists[i]:
                self.steps[i] += 1
                self._update(
                    mine[first:last],
                    mean[first:last],
                    self.m[first:last],
                    self.v[first:last],
                    self.steps[i],
                )
        dist.all_gather_into_tensor(weights, mine)
        start = 0
        for p in self.params:
            p.copy_(weights[start : start + p.numel()].view_as(p))
            start += p.numel()

    def _update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root

    def zero_grad(self):
        for p in self.params:
            p.grad = None
