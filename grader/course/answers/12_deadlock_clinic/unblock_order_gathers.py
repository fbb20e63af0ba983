# exercise: unblock_order
# diagnosis: forbidden_call
# hint: One all_reduce is all
import torch
import torch.distributed as dist


def unblock_order(x):
    everybody = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, x)
    return torch.stack(everybody).amax(0) + everybody[0]
