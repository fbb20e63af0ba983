# exercise: shift
# diagnosis: buffer_race
# hint: still being sent
# One tensor for sending and receiving at the same time.
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x.clone()
    if k % n == 0:
        return x
    request = dist.isend(x, (rank + k) % n)
    dist.recv(x, (rank - k) % n)
    request.wait()
    return x
