# exercise: BucketedDDP
# diagnosis: exception
# hint: forward has to take whatever the module takes
# Forward takes one argument only
import torch
import torch.distributed as dist
from torch import nn


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, src=0)
        ps = [p for p in module.parameters() if p.requires_grad]
        self.groups, cur, size = [], [], 0
        for p in ps[::-1]:
            s = p.numel() * p.element_size()
            if cur and size + s > bucket_bytes:
                self.groups.append(cur)
                cur, size = [], 0
            cur.append(p)
            size += s
        if cur:
            self.groups.append(cur)
        self.where = {p: i for i, g in enumerate(self.groups) for p in g}
        for p in ps:
            p.register_post_accumulate_grad_hook(self.hook)
        self.reset()

    def reset(self):
        self.left = [len(g) for g in self.groups]
        self.next = 0
        self.work = []

    def hook(self, p):
        if self.left[self.where[p]] == 0:
            raise RuntimeError("synchronise first")
        self.left[self.where[p]] -= 1
        while self.next < len(self.groups) and self.left[self.next] == 0:
            self.go()

    def go(self):
        g = self.groups[self.next]
        self.next += 1
        flat = torch.cat(
            [(torch.zeros_like(q) if q.grad is None else q.grad).reshape(-1) for q in g]
        )
        self.work.append((g, flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, x):
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(x)

    def finish_gradient_synchronization(self):
        while self.next < len(self.groups):
            self.go()
        for g, flat, w in self.work:
            w.wait()
            i = 0
            for q in g:
                q.grad = flat[i : i + q.numel()].view_as(q) / dist.get_world_size()
                i += q.numel()
        self.reset()
