# exercise: pair_group
# diagnosis: wrong_value
# hint: Both ranks of a pair return its group
import torch.distributed as dist


def pair_group(pairs):
    own = None
    for pair in pairs:
        group = dist.new_group(sorted(pair))
        if dist.get_rank() == max(pair):
            own = group
    return own
