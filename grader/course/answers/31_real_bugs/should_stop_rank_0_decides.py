# exercise: should_stop
# diagnosis: forbidden_call
# hint: One all_reduce
import torch
import torch.distributed as dist


def should_stop(loss, best):
    stop = torch.tensor(float(loss >= best))
    dist.broadcast(stop, src=0)
    return bool(stop)
