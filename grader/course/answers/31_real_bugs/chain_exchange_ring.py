# exercise: chain_exchange
# diagnosis: wrong_type
# hint: The chain has two ends
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return None, None
    left, right = (rank - 1) % n, (rank + 1) % n
    before, after = torch.empty_like(forward), torch.empty_like(backward)
    operations = [
        dist.P2POp(dist.isend, forward, right),
        dist.P2POp(dist.irecv, before, left),
        dist.P2POp(dist.isend, backward, left),
        dist.P2POp(dist.irecv, after, right),
    ]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    return before, after
