# exercise: DiLoCo
# diagnosis: wrong_value
# hint: It synchronises one inner step too early,
# Synchronises one call early first
import time
import torch
import torch.distributed as dist
from torch import nn


class DiLoCo:
    """Ranks train alone, and take an outer step together every inner_steps."""

    def __init__(self, module: nn.Module, inner_steps: int, outer_lr: float, momentum: float):
        self.parameters = list(module.parameters())
        for p in self.parameters:
            dist.broadcast(p.detach(), 0)
        self.common = [p.detach().clone() for p in self.parameters]
        self.velocity = [torch.zeros_like(p) for p in self.common]
        self.inner_steps, self.outer_lr, self.momentum = inner_steps, outer_lr, momentum
        self.count = 1

    @torch.no_grad()
    def after_inner_step(self) -> bool:
        self.count += 1
        if self.count % self.inner_steps:
            return False
        for p, common, velocity in zip(self.parameters, self.common, self.velocity):
            change = common - p
            dist.all_reduce(change)
            change /= dist.get_world_size()
            velocity.mul_(self.momentum).add_(change)
            common -= self.outer_lr * (change + self.momentum * velocity)
            p.copy_(common)
        return True
