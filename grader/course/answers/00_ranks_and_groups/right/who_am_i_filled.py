# exercise: who_am_i
# diagnosis: none
import torch
import torch.distributed as dist


def who_am_i() -> torch.Tensor:
    out = torch.empty(2, dtype=torch.int64)
    out[0] = dist.get_rank()
    out[1] = dist.get_world_size()
    return out
