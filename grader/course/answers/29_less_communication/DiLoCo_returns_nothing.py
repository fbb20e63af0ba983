# exercise: DiLoCo
# diagnosis: wrong_type
# hint: a bool each time
import torch
import torch.distributed as dist


class DiLoCo:
    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.parameters = list(module.parameters())
        for p in self.parameters:
            dist.broadcast(p.detach(), 0)
        self.common = [p.detach().clone() for p in self.parameters]
        self.velocity = [torch.zeros_like(t) for t in self.common]
        self.inner_steps, self.count = inner_steps, 0
        self.outer_lr, self.momentum = outer_lr, momentum

    @torch.no_grad()
    def after_inner_step(self):
        self.count += 1
        if self.count % self.inner_steps:
            return
        for p, common, velocity in zip(self.parameters, self.common, self.velocity):
            gradient = common - p
            dist.all_reduce(gradient)
            gradient /= dist.get_world_size()
            velocity.mul_(self.momentum).add_(gradient)
            common -= self.outer_lr * (gradient + self.momentum * velocity)
            p.copy_(common)
