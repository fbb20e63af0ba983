# exercise: sequence_shard
# diagnosis: wrong_gradient
# hint: this rank's part, and zeros
import torch.distributed as dist


def sequence_shard(x, dim=1):
    return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()
