# exercise: ring_all_gather
# diagnosis: none
# Two buffers that change places, copies for the list.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    outgoing, incoming = x.clone(), torch.empty_like(x)
    found = {rank: x.clone()}
    owner = rank
    while len(found) < n:
        receive = dist.irecv(incoming, src=(rank + n - 1) % n)
        send = dist.isend(outgoing, dst=(rank + 1) % n)
        receive.wait()
        send.wait()
        owner = (owner - 1) % n
        found[owner] = incoming.clone()
        outgoing, incoming = incoming, outgoing
    return [found[r] for r in sorted(found)]
