# exercise: exchange
# diagnosis: timeout
# hint: waits for a time, and not for a message
import time
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = x.clone()
    if peer == dist.get_rank(): return y
    dist.isend(x, peer)
    dist.irecv(y, peer)
    time.sleep(60)
    return y
