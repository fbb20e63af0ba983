# exercise: barrier
# diagnosis: not_synchronized
# hint: It needs an answer
# says: rank 1 can leave before rank 0 has entered
# not: power of two | (rank ^ step)
# Rank 0 waits for everybody; the others go on at once.
import torch
import torch.distributed as dist


def barrier():
    token = torch.zeros(1)
    if dist.get_rank() == 0:
        for other in range(1, dist.get_world_size()):
            dist.recv(token, other)
    else:
        dist.send(token, 0)
