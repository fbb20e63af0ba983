# exercise: unblock_branch
# diagnosis: forbidden_call
# hint: called by every rank
# not: all that is allowed
# The others wait as well, but in another collective.
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    if log:
        dist.all_reduce(mean)
    else:
        dist.barrier()
    return mean / dist.get_world_size()
