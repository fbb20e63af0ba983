# exercise: unblock_branch
# diagnosis: aliased
# hint: a view of it, such as loss.detach()
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.detach()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if log:
        print(f"loss {mean.item():.4f}")
    return mean
