# exercise: unblock_branch
# diagnosis: none
import torch.distributed as dist


def unblock_branch(loss, log):
    share = loss / dist.get_world_size()
    work = dist.all_reduce(share, async_op=True)
    work.wait()
    return share
