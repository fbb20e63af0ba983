"""What the mistakes of this chapter share: an optimizer that is right."""
# or: LAYOUT = "each parameter is a row"
import torch
import torch.distributed as dist

LAYOUT = "all parameters in one row"


class Row:
    """Parameters that lie end to end, with the state of one shard of them."""

    def __init__(self, params):
        n, rank = dist.get_world_size(), dist.get_rank()
        self.params = params
        self.size = -(-sum(p.numel() for p in params) // n)
        self.shard = slice(rank * self.size, (rank + 1) * self.size)
        self.m, self.v = params[0].detach().new_zeros(2, self.size)

    def flat(self, tensors):
        flat = self.params[0].detach().new_zeros(dist.get_world_size() * self.size)
        start = 0
        for p, tensor in zip(self.params, tensors):
            if tensor is not None:
                flat[start : start + p.numel()] = tensor.flatten()
            start += p.numel()
        return flat


class Sharded:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.lr, self.betas, self.eps = lr, betas, eps
        self.weight_decay = weight_decay
        one_row = LAYOUT == "all parameters in one row"
        self.rows = [Row(one) for one in ([self.params] if one_row else [[p] for p in self.params])]
        self.steps = dict.fromkeys(self.params, 0)

    def have_gradients(self):
        """Return the parameters of which some rank has a gradient."""
        mine = torch.tensor([p.grad is not None for p in self.params]).to(torch.uint8)
        flags = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(flags, mine)
        found = torch.stack(flags).any(0).tolist()
        return {p for p, there in zip(self.params, found) if there}

    def number(self, p):
        """Return the number of this step for a parameter."""
        self.steps[p] += 1
        return self.steps[p]

    @torch.no_grad()
    def step(self):
        exist = self.have_gradients()
        for row in self.rows:
            weights = row.flat(row.params)
            mine = weights[row.shard].clone()
            self.change(row, mine, self.mean(row), exist)
            self.gather(row, weights, mine)
            start = 0
            for p in row.params:
                p.copy_(weights[start : start + p.numel()].view_as(p))
                start += p.numel()

    def mean(self, row):
        mean = torch.empty_like(row.m)
        dist.reduce_scatter_tensor(mean, row.flat([p.grad for p in row.params]))
        return mean / dist.get_world_size()

    def change(self, row, mine, mean, exist):
        """Update this rank's shard."""
        start = -row.shard.start
        for p in row.params:
            first, last = max(start, 0), max(min(start + p.numel(), row.size), 0)
            start += p.numel()
            if p in exist:
                part = slice(first, last)
                self.update(mine[part], mean[part], row.m[part], row.v[part], self.number(p))

    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root

    def gather(self, row, weights, mine):
        dist.all_gather_into_tensor(weights, mine)

    def zero_grad(self):
        for p in self.params:
            p.grad = None
