# exercise: ring_all_gather
# diagnosis: too_many_rounds
# hint: a round takes two
# earns: 0.5
# Even ranks send first, odd ranks receive first: right, and half as fast.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        outgoing, incoming = parts[(rank - s) % n], parts[(rank - s - 1) % n]
        if rank % 2 == 0:
            dist.send(outgoing, (rank + 1) % n)
            dist.recv(incoming, (rank - 1) % n)
        else:
            dist.recv(incoming, (rank - 1) % n)
            dist.send(outgoing, (rank + 1) % n)
    return parts
