# ranks: 3
"""Each rank ends its process itself, when all is done, without a teardown that could hang."""

import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(2)
dist.all_reduce(x)
print("sum", x[0].item())
sys.stdout.flush()
os._exit(0)
