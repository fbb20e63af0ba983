# exercise: barrier
# diagnosis: none
# As one batch a round, with tokens of no element at all.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in range((n - 1).bit_length()):
        batch = [
            dist.P2POp(dist.irecv, torch.empty(0), (rank - 2**k) % n),
            dist.P2POp(dist.isend, torch.empty(0), (rank + 2**k) % n),
        ]
        for request in dist.batch_isend_irecv(batch):
            request.wait()
