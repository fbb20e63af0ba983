# exercise: sequence_unshard
# diagnosis: forbidden_call
# hint: zeros around it
# not: in backward
import torch
import torch.distributed as dist


def sequence_unshard(x_shard, full_length, dim=1):
    shape = list(x_shard.shape)
    shape[dim] = full_length
    whole = x_shard.new_zeros(shape)
    whole.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].copy_(x_shard)
    dist.all_reduce(whole)
    return whole
