# ranks: 2
# diagnosis: buffer_race
# status: 3
"""A tensor is used while it is being reduced."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
x, y = torch.ones(4), torch.ones(4)
work = dist.all_reduce(x, async_op=True)
other = dist.all_reduce(x, async_op=True)  # here
work.wait()
other.wait()
