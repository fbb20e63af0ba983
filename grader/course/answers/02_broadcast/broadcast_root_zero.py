"""Every rank ends with rank 0's x. The source is src, and it is not always rank 0."""
# exercise: broadcast
# diagnosis: wrong_value
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)
