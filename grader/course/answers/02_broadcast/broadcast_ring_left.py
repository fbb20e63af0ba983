# exercise: broadcast
# diagnosis: deadlock
# hint: The chain ends one rank too early:
# Chain that runs left from src and stops one early
import torch.distributed as dist


def broadcast(x, src):
    n, r = dist.get_world_size(), dist.get_rank()
    v = (src - r) % n
    if v:
        dist.recv(x, (r + 1) % n)
    if v < n - 2 or (n == 2 and v == 0):
        dist.send(x, (r - 1) % n)
