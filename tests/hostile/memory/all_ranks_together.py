# promise: memory has a limit, whatever it is taken for
# exercise: broadcast
# verdict: failed
# diagnosis: memory_limit
import time

import torch.distributed as dist

HELD = []


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 8:
        # far below what one rank may have, on every rank, and more in every case
        HELD.append(bytearray(300 << 20))
        time.sleep(0.3)
    if rank != src:
        dist.recv(x, src)
        return
    for peer in range(n):
        if peer != src:
            dist.send(x, peer)
