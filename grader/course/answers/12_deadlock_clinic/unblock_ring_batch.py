# exercise: unblock_ring
# diagnosis: too_many_messages
# hint: Here send and recv have to do
# says: calls of isend and irecv
# earns: 0.5
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x.clone()
    if n > 1:
        receive = dist.P2POp(dist.irecv, y, (rank - 1) % n)
        send = dist.P2POp(dist.isend, x, (rank + 1) % n)
        for request in dist.batch_isend_irecv([receive, send]):
            request.wait()
    return y
