# ranks: 2
# diagnosis: dtype_mismatch
# status: 3
"""One rank counts in integers."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
hits = torch.zeros(1) if rank == 0 else torch.zeros(1, dtype=torch.int64)
dist.all_reduce(hits)  # here
