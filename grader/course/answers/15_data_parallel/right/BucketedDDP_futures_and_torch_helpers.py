# exercise: BucketedDDP
# diagnosis: none
import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.wrapped = module
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.detach(), 0)
        params = [p for p in module.parameters() if p.requires_grad][::-1]
        self.groups = [[]]
        size = 0
        for p in params:
            size += p.numel() * p.element_size()
            if self.groups[-1] and size > bucket_bytes:
                self.groups.append([])
                size = p.numel() * p.element_size()
            self.groups[-1].append(p)
        self.place = {p: i for i, group in enumerate(self.groups) for p in group}
        self.counts = [0] * len(self.groups)
        self.works = {}
        for p in params:
            p.register_post_accumulate_grad_hook(self.on_gradient)

    def on_gradient(self, p):
        if self.place[p] in self.works:
            raise RuntimeError("a second backward before the first was synchronised")
        self.counts[self.place[p]] += 1
        for i, group in enumerate(self.groups):
            if i in self.works:
                continue
            if self.counts[i] < len(group):
                return
            self.launch(i)

    def launch(self, i):
        gradients = []
        for p in self.groups[i]:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            gradients.append(p.grad)
        flat = _flatten_dense_tensors(gradients)
        work = dist.all_reduce(flat, op=dist.ReduceOp.SUM, async_op=True)
        self.works[i] = work, flat, gradients

    def forward(self, *inputs, **keywords):
        for buffer in self.wrapped.buffers() if self.training else ():
            dist.broadcast(buffer, 0)
        return self.wrapped(*inputs, **keywords)

    def finish_gradient_synchronization(self):
        for i in range(len(self.groups)):
            if i not in self.works:
                self.launch(i)
        for work, flat, gradients in self.works.values():
            work.wait()
            for gradient, mean in zip(gradients, _unflatten_dense_tensors(flat, gradients)):
                gradient.copy_(mean).div_(dist.get_world_size())
        self.works.clear()
        self.counts = [0] * len(self.groups)
