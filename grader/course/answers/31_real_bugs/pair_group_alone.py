"""A rank without a pair has a group of its own here. It should return None."""
# exercise: pair_group
# diagnosis: wrong_type
import torch.distributed as dist


def pair_group(pairs):
    own = None
    paired = {rank for pair in pairs for rank in pair}
    alone = [(rank,) for rank in range(dist.get_world_size()) if rank not in paired]
    for members in [*pairs, *alone]:
        group = dist.new_group(members)
        if dist.get_rank() in members:
            own = group
    return own
