# exercise: sequence_shard
# diagnosis: aliased
# hint: x_part.clone()
import torch.distributed as dist


def sequence_shard(x, dim=1):
    return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()]
