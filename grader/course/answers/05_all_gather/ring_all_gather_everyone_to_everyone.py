# exercise: ring_all_gather
# diagnosis: not_neighbour
# hint: through your left neighbour
# earns: 0.5
# Right values, and a piece for everybody, but no ring.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(x, (rank + k) % n)
        dist.recv(parts[(rank - k) % n], (rank - k) % n)
        request.wait()
    return parts
