"""Rank 0 has a batch more, under DDP."""

# culprits: 0
# verdict: entered differently
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(6 if dist.get_rank() == 0 else 5):
    loss = model(torch.ones(8, 100)).sum()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
dist.barrier()
