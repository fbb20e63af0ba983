# exercise: unblock_branch
# diagnosis: wrong_value
# hint: return its result
# not: Taking the collective away | Only the rank that logs
# Every rank calls the all-reduce, and none returns what comes of it.
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if log:
        print(f"loss {mean.item():.4f}")
    return loss.clone()
