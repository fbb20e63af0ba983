# exercise: tree_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    first = 1
    if v:
        parent = v - (1 << (v.bit_length() - 1))
        dist.irecv(x, (parent + src) % n).wait()
        first = 1 << v.bit_length()
    requests, step = [], first
    while v + step < n:
        requests.append(dist.isend(x, (v + step + src) % n))
        step *= 2
    for request in requests:
        request.wait()
