# exercise: unblock_branch
# diagnosis: deadlock
# hint: Every rank has to,
# says: has already returned and will never call it
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    if log:
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        print(f"loss {mean.item():.4f}")
    return mean
