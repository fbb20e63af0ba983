# exercise: barrier
# diagnosis: not_synchronized
# hint: A message is sent before that of
# Sends in round k before receiving round k-1 (receives delayed by one)
import torch
import torch.distributed as dist


def barrier():
    n, r = dist.get_world_size(), dist.get_rank()
    prev, ws, s = None, [], 1
    while s < n:
        ws.append(dist.isend(torch.zeros(1), (r + s) % n))
        if prev:
            dist.recv(torch.zeros(1), (r - prev) % n)
        prev, s = s, s * 2
    if prev:
        dist.recv(torch.zeros(1), (r - prev) % n)
    for w in ws:
        w.wait()
