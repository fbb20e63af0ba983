# ranks: 2
# diagnosis: size_mismatch
# status: 3
"""The last batches differ in size, and their losses are gathered."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
losses = torch.ones(4 - rank)
every = [torch.empty(4 - rank) for _ in range(2)]
dist.all_gather(every, losses)  # here
