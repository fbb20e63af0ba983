# exercise: unblock_branch
# diagnosis: input_changed
# hint: give it a copy, loss.clone()
import torch.distributed as dist


def unblock_branch(loss, log):
    dist.all_reduce(loss)
    return loss / dist.get_world_size()
