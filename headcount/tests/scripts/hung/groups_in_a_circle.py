"""Three groups of two, called in another order by each rank."""

# culprits: 0 1 2
# verdict: a circle
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
left = dist.new_group([0, 1], group_desc="left")
right = dist.new_group([1, 2], group_desc="right")
dist.all_reduce(torch.ones(1))
if rank == 0:
    dist.all_reduce(torch.ones(1), group=left)  # culprit
elif rank == 1:
    dist.all_reduce(torch.ones(1), group=right)
    dist.all_reduce(torch.ones(1), group=left)
dist.barrier()
if rank == 2:
    dist.all_reduce(torch.ones(1), group=right)
