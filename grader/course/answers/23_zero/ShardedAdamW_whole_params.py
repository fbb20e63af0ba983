# exercise: ShardedAdamW
# diagnosis: wrong_value
# hint: A gradient that is None on all
# Shards whole parameters (rank i % n owns), state too big for uneven
import torch
import torch.distributed as dist


class ShardedAdamW:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.ps = [p for p in dict.fromkeys(params) if p.requires_grad]
        self.n, self.r = dist.get_world_size(), dist.get_rank()
        own = [p for i, p in enumerate(self.ps) if i % self.n == self.r]
        self.opt = (
            torch.optim.AdamW(own, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
            if own
            else None
        )

    def step(self):
        for i, p in enumerate(self.ps):
            g = torch.zeros_like(p) if p.grad is None else p.grad
            gs = [torch.empty_like(g) for _ in range(self.n)]
            dist.all_gather(gs, g)
            p.grad = sum(gs) / self.n
        if self.opt:
            self.opt.step()
        for i, p in enumerate(self.ps):
            dist.broadcast(p.data, i % self.n)

    def zero_grad(self):
        for p in self.ps:
            p.grad = None
