# exercise: unblock_branch
# diagnosis: wrong_type
# hint: return the tensor
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()
