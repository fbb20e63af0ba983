# exercise: should_stop
# diagnosis: none
import torch
import torch.distributed as dist


def should_stop(loss, best):
    share = torch.tensor([loss / dist.get_world_size()], dtype=torch.float64)
    work = dist.all_reduce(share, async_op=True)
    work.wait()
    return not share[0].item() < best
