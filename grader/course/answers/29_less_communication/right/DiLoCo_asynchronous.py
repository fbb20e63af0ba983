# exercise: DiLoCo
# diagnosis: none
import torch
import torch.distributed as dist


class DiLoCo:
    """The all-reduces of all trainable parameters are in flight at once; names are the keys."""

    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.module = module
        self.options = inner_steps, outer_lr, momentum
        self.steps = 0
        with torch.no_grad():
            for p in module.parameters():
                dist.broadcast(p, src=0)
        named = module.named_parameters()
        self.anchor = {name: p.detach().clone() for name, p in named if p.requires_grad}
        self.velocity = {}

    def after_inner_step(self):
        inner_steps, lr, mu = self.options
        self.steps += 1
        if self.steps % inner_steps != 0:
            return False
        current = dict(self.module.named_parameters())
        deltas, works = {}, []
        for name, anchor in self.anchor.items():
            deltas[name] = anchor - current[name].detach()
            works.append(dist.all_reduce(deltas[name], async_op=True))
        for work in works:
            work.wait()
        for name, delta in deltas.items():
            delta = delta / dist.get_world_size()
            v = self.velocity.get(name, torch.zeros_like(delta)) * mu + delta
            self.velocity[name] = v
            self.anchor[name] = self.anchor[name] - lr * delta - lr * mu * v
            current[name].data.copy_(self.anchor[name])
        return True
