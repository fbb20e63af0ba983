# ranks: 2
# diagnosis: exception
# status: 1
"""Parameters that the loss does not depend on."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x, both):
        return self.other(self.one(x)) if both else self.one(x)


model = DDP(Net())
for _ in range(2):
    model(torch.ones(2, 4), rank == 0).sum().backward()  # here
