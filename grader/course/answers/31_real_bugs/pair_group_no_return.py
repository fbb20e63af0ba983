# exercise: pair_group
# diagnosis: wrong_value
# hint: never returns anything
import torch.distributed as dist


def pair_group(pairs):
    own = None
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() in pair:
            own = group
