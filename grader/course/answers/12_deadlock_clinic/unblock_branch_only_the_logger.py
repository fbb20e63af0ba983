"""Only the rank that logs has the mean. All of them took part in the all-reduce, so all can return
it."""
# exercise: unblock_branch
# diagnosis: wrong_value
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean if log else loss.clone()
