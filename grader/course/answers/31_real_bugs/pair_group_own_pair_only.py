# exercise: pair_group
# diagnosis: order_mismatch
# hint: the same groups in the same order
import torch.distributed as dist


def pair_group(pairs):
    for pair in pairs:
        if dist.get_rank() in pair:
            return dist.new_group(pair)
    return None
