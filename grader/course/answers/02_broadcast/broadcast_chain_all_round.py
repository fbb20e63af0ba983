"""The last rank of your chain sends on to src, which has x already and does not receive: whoever is
left of src in the ring must not send."""
# exercise: broadcast
# diagnosis: deadlock
# alike: messages
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    if rank != src:
        dist.recv(x, (rank - 1) % n)
    dist.send(x, (rank + 1) % n)
