# exercise: ShardedAdamW
# diagnosis: none
import torch
import torch.distributed as dist


class ShardedAdamW:
    """Every parameter is cut into n parts of its own; padding is at the end of each."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        seen = []
        for p in params:
            if p.requires_grad and not any(p is q for q in seen):
                seen.append(p)
        self.params = seen
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, weight_decay
        self.state = {}

    def _part(self, p):
        return -(-p.numel() // dist.get_world_size())

    def _padded(self, t):
        n = dist.get_world_size()
        flat = t.detach().reshape(-1)
        return torch.nn.functional.pad(flat, (0, n * self._part(t) - flat.numel()))

    def step(self):
        n, rank = dist.get_world_size(), dist.get_rank()
        has = torch.tensor([float(p.grad is not None) for p in self.params])
        every = torch.empty(n * len(has))
        dist.all_gather_into_tensor(every, has)
        holders = every.view(n, -1).sum(0)
        for i, p in enumerate(self.params):
            if not holders[i]:
                continue
            gradient = torch.zeros_like(p) if p.grad is None else p.grad
            mean = p.detach().new_empty(self._part(p))
            dist.reduce_scatter_tensor(mean, self._padded(gradient))
            mean.div_(n)
            if p not in self.state:
                self.state[p] = [0, torch.zeros_like(mean), torch.zeros_like(mean)]
            self.state[p][0] += 1
            t, m, v = self.state[p]
            b1, b2 = self.betas
            m.mul_(b1).add_(mean, alpha=1 - b1)
            v.mul_(b2).addcmul_(mean, mean, value=1 - b2)
            whole = self._padded(p)
            mine = whole.view(n, -1)[rank].mul(1 - self.lr * self.decay)
            mine -= self.lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + self.eps)
            dist.all_gather_into_tensor(whole, mine)
            p.data.copy_(whole[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()
