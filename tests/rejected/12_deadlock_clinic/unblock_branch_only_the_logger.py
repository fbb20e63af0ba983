# exercise: unblock_branch
# diagnosis: wrong_value
# hint: Only the rank that logs has the mean
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean if log else loss.clone()
