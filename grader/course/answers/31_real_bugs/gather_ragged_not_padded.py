"""The room is as large as what each rank has, but the tensors that are gathered still differ in
size. Pad all of them to the longest, and cut the padding off afterwards."""
# exercise: gather_ragged
# diagnosis: exception
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    everyone = [x.new_empty(count.item(), *x.shape[1:]) for count in counts]
    dist.all_gather(everyone, x)
    return everyone
