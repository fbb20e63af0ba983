# exercise: unblock_branch
# diagnosis: order_mismatch
# hint: with the same operation
# not: call different things
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    if log:
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
    else:
        dist.all_reduce(mean, op=dist.ReduceOp.MAX)
    return mean / dist.get_world_size()
