# exercise: exchange
# diagnosis: none
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = x.clone()
    if peer != dist.get_rank():
        batch = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y, peer)]
        for request in dist.batch_isend_irecv(batch):
            request.wait()
    return y
