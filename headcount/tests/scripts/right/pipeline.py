# ranks: 3
"""Three stages of a pipeline, 1F1B, by torch's own schedule."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
stage = PipelineStage(torch.nn.Linear(4, 4), rank, size, torch.device("cpu"))
schedule = Schedule1F1B(stage, 6, loss_fn=lambda out, target: (out - target).square().mean())
for _ in range(2):
    if rank == 0:
        schedule.step(torch.ones(12, 4))
    elif rank == size - 1:
        schedule.step(target=torch.zeros(12, 4), losses=[])
    else:
        schedule.step()
dist.destroy_process_group()
