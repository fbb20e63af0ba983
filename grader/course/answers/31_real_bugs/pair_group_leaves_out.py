# exercise: pair_group
# diagnosis: order_mismatch
# hint: come to the end of the list
import torch.distributed as dist


def pair_group(pairs):
    if not any(dist.get_rank() in pair for pair in pairs):
        return None
    own = None
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() in pair:
            own = group
    return own
