# exercise: shift
# diagnosis: wrong_value
# hint: as if k were positive
# not: may be why
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    came = torch.empty_like(x)
    to, source = (rank + k) % n, (rank - k) % n
    request = dist.isend(x, to if k > 0 else source)
    dist.recv(came, source if k > 0 else to)
    request.wait()
    return came
