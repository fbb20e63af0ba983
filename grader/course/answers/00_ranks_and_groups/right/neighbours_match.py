# exercise: neighbours
# diagnosis: none
# Match statement, generator, Chinese names
import torch.distributed as dist


def _邻居(排名, 总数):
    for 步 in (-1, 1):
        yield (排名 + 步 + 总数) % 总数


def neighbours():
    match dist.get_world_size():
        case 1:
            return 0, 0
        case n:
            return tuple(_邻居(dist.get_rank(), n))
