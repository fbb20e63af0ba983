# ranks: 2
"""Unused parameters, a static graph, a communication hook in Python, a compiled model, threads."""

import threading

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x, both):
        return self.other(self.one(x)) if both else self.one(x)


def train(model, *extra):
    for _step in range(4):
        model(torch.ones(2, 4), *extra).sum().backward()
        model.zero_grad()


dist.init_process_group()
rank = dist.get_rank()
train(DDP(Net(), find_unused_parameters=True), rank == 0)
train(DDP(torch.nn.Linear(4, 4), static_graph=True))
hooked = DDP(torch.nn.Linear(4, 4))
hooked.register_comm_hook(None, fp16_compress_hook)
train(hooked)
train(torch.compile(DDP(torch.nn.Linear(4, 4))))
group = dist.new_group([0, 1])
beside = threading.Thread(target=lambda: dist.all_reduce(torch.ones(3), group=group))
beside.start()
dist.barrier()
beside.join()
dist.destroy_process_group()
