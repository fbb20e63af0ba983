# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# hint: Whole tensors are sent
# says: The sums are right, but 12 elements sent by one rank instead of at most 8
# earns: 0.5
# Whole tensors go round, each rank adds them up in an order of its own, and op is ignored: the
# schedule leads, which is what there is to learn.
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    passing, coming = x.clone(), torch.empty_like(x)
    for _ in range(n - 1):
        request = dist.isend(passing, (rank + 1) % n)
        dist.recv(coming, (rank - 1) % n)
        request.wait()
        x += coming
        passing, coming = coming, passing
