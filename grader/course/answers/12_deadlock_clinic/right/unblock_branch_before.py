# exercise: unblock_branch
# diagnosis: none
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if log:
        print(f"loss {mean.item():.4f}")
    return mean
