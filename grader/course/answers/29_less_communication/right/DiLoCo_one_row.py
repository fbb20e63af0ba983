# exercise: DiLoCo
# diagnosis: none
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class DiLoCo:
    """All parameters in one row: one all-reduce for each outer step, of the weights."""

    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.params = list(module.parameters())
        self.theta = parameters_to_vector(self.params).detach()
        dist.broadcast(self.theta, 0)
        self._write()
        self.v = torch.zeros_like(self.theta)
        self.h, self.lr, self.mu, self.t = inner_steps, outer_lr, momentum, 0

    @torch.no_grad()
    def _write(self):
        start = 0
        for p in self.params:
            p.copy_(self.theta[start : start + p.numel()].view_as(p))
            start += p.numel()

    def after_inner_step(self):
        self.t = (self.t + 1) % self.h
        synchronise = self.t == 0
        if synchronise:
            mean = parameters_to_vector(self.params).detach() / dist.get_world_size()
            dist.all_reduce(mean)
            delta = self.theta - mean
            self.v = self.mu * self.v + delta
            self.theta = self.theta - self.lr * (delta + self.mu * self.v)
            self._write()
        return synchronise
