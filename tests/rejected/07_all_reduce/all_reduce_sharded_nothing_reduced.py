# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: nothing has been reduced
# Half of it: an all-gather.
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = padded[rank * size : (rank + 1) * size].clone()
    dist.all_gather_into_tensor(padded, piece)
    x.copy_(padded[: x.numel()].view_as(x))
