# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: what a group of one costs
import torch.distributed as dist


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    n = dist.get_world_size()
    return 2 * (n - 1) * (alpha + nbytes / n * beta)
