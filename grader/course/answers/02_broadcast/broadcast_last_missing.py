"""The last rank waits in vain: range(n - 1) ends with n − 2. The loop over the ranks is range(n),
without src.
"""
# exercise: broadcast
# diagnosis: deadlock
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size() - 1):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
