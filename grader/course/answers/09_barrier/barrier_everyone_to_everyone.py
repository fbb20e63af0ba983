# exercise: barrier
# diagnosis: too_many_rounds
# hint: enough
# earns: 0.5
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [(rank + k) % n for k in range(1, n)]
    requests = [dist.isend(torch.zeros(1), other) for other in others]
    requests += [dist.irecv(torch.zeros(1), other) for other in reversed(others)]
    for request in requests:
        request.wait()
