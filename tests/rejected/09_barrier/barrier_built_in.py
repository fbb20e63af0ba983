# exercise: barrier
# diagnosis: forbidden_call
import torch.distributed as dist


def barrier():
    dist.barrier()
