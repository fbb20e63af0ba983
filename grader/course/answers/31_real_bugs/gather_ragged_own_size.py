"""Each rank makes room for tensors of its own size, and the others have other sizes. The numbers of
rows have to be gathered first."""
# exercise: gather_ragged
# diagnosis: size_mismatch
import torch
import torch.distributed as dist


def gather_ragged(x):
    everyone = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, x)
    return everyone
