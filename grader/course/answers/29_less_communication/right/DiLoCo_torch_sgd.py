# exercise: DiLoCo
# diagnosis: none
import torch
import torch.distributed as dist


class DiLoCo:
    """The outer optimizer is torch's own SGD, on copies of the parameters."""

    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.module, self.inner_steps, self.left = module, inner_steps, inner_steps
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
        self.outer = [torch.nn.Parameter(p.detach().clone()) for p in module.parameters()]
        self.sgd = torch.optim.SGD(
            self.outer, lr=outer_lr, momentum=momentum, nesterov=momentum > 0
        )

    def after_inner_step(self):
        self.left -= 1
        if self.left > 0:
            return False
        self.left = self.inner_steps
        for ours, p in zip(self.outer, self.module.parameters()):
            ours.grad = ours.detach() - p.detach()
            dist.all_reduce(ours.grad, op=dist.ReduceOp.SUM)
            ours.grad /= dist.get_world_size()
        self.sgd.step()
        for ours, p in zip(self.outer, self.module.parameters()):
            p.data.copy_(ours.data)
        return True
