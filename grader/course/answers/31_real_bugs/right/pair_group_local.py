# exercise: pair_group
# diagnosis: none
import torch.distributed as dist


def pair_group(pairs):
    rank = dist.get_rank()
    for pair in pairs:
        if rank in pair:
            return dist.new_group(sorted(pair), use_local_synchronization=True)
    return None
