# exercise: sequence_shard
# diagnosis: wrong_gradient
# hint: No gradient reaches x
import torch.distributed as dist


def sequence_shard(x, dim=1):
    return x.detach().tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()
