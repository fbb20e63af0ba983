# exercise: sync_parameters
# diagnosis: deadlock
# hint: stands under `if rank == src`
import torch.distributed as dist


def sync_parameters(module, src):
    rank = dist.get_rank()
    for p in module.parameters():
        if rank == src:
            dist.broadcast(p.data, src)
