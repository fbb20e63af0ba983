# exercise: sum_of_survivors
# diagnosis: wrong_value
# hint: do not agree
# Messages reach one rank and not the other, and each keeps what it has.
import torch
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    rank, n = dist.get_rank(), dist.get_world_size()
    found, requests = {rank: x}, []
    others = [other for other in range(n) if other != rank]
    for other in others:
        try:
            requests.append(dist.isend(x, other))
        except RuntimeError:
            pass
    for other in others:
        y = torch.empty_like(x)
        try:
            dist.recv(y, other)
        except RuntimeError:
            continue
        found[other] = y
    for request in requests:
        try:
            request.wait()
        except RuntimeError:
            pass
    ranks = sorted(found)
    return sum(found[other] for other in ranks), ranks
