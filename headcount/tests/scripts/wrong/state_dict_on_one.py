# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""Rank 0 alone gathers the full weights."""

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
rank = dist.get_rank()
model = torch.nn.Linear(4, 4)
fully_shard(model)
model(torch.ones(2, 4)).sum().backward()
if rank == 0:
    get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))  # here
dist.barrier()
