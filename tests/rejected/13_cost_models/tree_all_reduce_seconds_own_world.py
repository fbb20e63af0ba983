# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: what a group of one costs
import torch.distributed as dist


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = (dist.get_world_size() - 1).bit_length()
    return 2 * levels * (alpha + nbytes * beta)
