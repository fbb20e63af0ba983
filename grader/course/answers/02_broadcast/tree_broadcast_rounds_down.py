"""The number of rounds is rounded down, so the last round, which is not full, is missing: 5 ranks
need three rounds, as many as 8. Go on while step < n.
"""
# exercise: tree_broadcast
# diagnosis: wrong_value
import math

import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    for i in range(int(math.log2(n))):
        step = 2**i
        if v < step and v + step < n:
            dist.send(x, (v + step + src) % n)
        elif step <= v < 2 * step:
            dist.recv(x, (v - step + src) % n)
