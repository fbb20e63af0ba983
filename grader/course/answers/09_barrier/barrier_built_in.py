# exercise: barrier
# diagnosis: forbidden_call
# hint: -
import torch.distributed as dist


def barrier():
    dist.barrier()
