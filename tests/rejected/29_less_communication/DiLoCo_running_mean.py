# exercise: DiLoCo
# diagnosis: wrong_value
# hint: as in a running mean
import torch, torch.distributed as dist
from torch import nn
class DiLoCo:
    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.params = list(module.parameters())
        with torch.no_grad():
            for p in self.params:
                dist.broadcast(p, 0)
        self.theta = [p.detach().clone() for p in self.params]
        self.v = [torch.zeros_like(t) for t in self.theta]
        self.H, self.lr, self.mu, self.t = inner_steps, outer_lr, momentum, 0
    @torch.no_grad()
    def after_inner_step(self):
        self.t += 1
        if self.t < self.H:
            return False
        self.t = 0
        for i, p in enumerate(self.params):
            d = self.theta[i] - p
            dist.all_reduce(d)
            d /= dist.get_world_size()
            self.v[i] = self.mu * self.v[i] + (1 - self.mu) * d
            self.theta[i] = self.theta[i] - self.lr * (d + self.mu * self.v[i])
            p.copy_(self.theta[i])
        return True
