"""Only the rank that logs divides by n; the others return the sum. Every rank has to divide, so
the division does not belong in the branch."""
# exercise: unblock_branch
# diagnosis: wrong_value

import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    if log:
        mean /= dist.get_world_size()
        print(f"loss {mean.item():.4f}")
    return mean
