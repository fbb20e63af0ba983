# promise: an exercise has a limit on all its calls together
# exercise: broadcast
# verdict: failed
# diagnosis: timeout
# score: some
# seconds: 5
import time

import torch.distributed as dist


def broadcast(x, src):
    time.sleep(0.5)
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for dst in range(n):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
