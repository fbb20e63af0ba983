"""A right job that trains until it is told to end, and prints its weights now and then."""

import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

end, least, every = sys.argv[1], int(sys.argv[2]), 40
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
step, over = 0, torch.zeros(1)
while step < least or not over:
    if rank == 1 and step % 8 == 7:
        time.sleep(0.8)  # slower than the others, and longer than two readings are apart
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().sum().backward()
    optimizer.step()
    step += 1
    if step % every == 0 and rank == 0:
        weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
        print("weights", hashlib.sha256(weights).hexdigest(), flush=True)
    over = torch.tensor([float(os.path.exists(end))])
    dist.all_reduce(over, op=dist.ReduceOp.MAX)
dist.destroy_process_group()
