"""The loop leaves out the wrong rank: with range(1, n), rank 0 gets nothing when it is not src."""
# exercise: broadcast
# diagnosis: deadlock
# says: rank 0 waits to receive
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(1, dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)
