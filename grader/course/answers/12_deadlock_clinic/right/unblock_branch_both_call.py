# exercise: unblock_branch
# diagnosis: none
# Not pretty, but every rank makes the same call.
import torch.distributed as dist


def unblock_branch(loss, log):
    n = dist.get_world_size()
    if log:
        mean = loss.clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        print("mean loss", (mean / n).item())
    else:
        mean = loss.clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
    return mean / n
