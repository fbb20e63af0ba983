# exercise: scatter
# diagnosis: forbidden_call
# hint: -
import torch.distributed as dist


def scatter(out, chunks, src):
    dist.scatter(out, chunks, src=src)
