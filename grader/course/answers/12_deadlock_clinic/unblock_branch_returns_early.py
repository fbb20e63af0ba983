# exercise: unblock_branch
# diagnosis: deadlock
# hint: Every rank has to,
import torch.distributed as dist


def unblock_branch(loss, log):
    if not log:
        return loss.clone()
    mean = loss.clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size()
