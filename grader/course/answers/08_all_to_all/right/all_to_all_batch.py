# exercise: all_to_all
# diagnosis: none
# One batch for all steps, in a tuple of views of one buffer.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    outbox = torch.stack(chunks)
    inbox = torch.zeros_like(outbox)
    inbox[rank] = outbox[rank]
    operations = []
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        operations.append(dist.P2POp(dist.isend, outbox[dst], dst))
        operations.append(dist.P2POp(dist.irecv, inbox[src], src))
    if operations:
        for request in dist.batch_isend_irecv(operations):
            request.wait()
    return tuple(inbox)
