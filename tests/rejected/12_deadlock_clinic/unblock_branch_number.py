# exercise: unblock_branch
# diagnosis: wrong_type
# hint: .item() turns a tensor into a number
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()
