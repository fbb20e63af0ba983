# exercise: unblock_branch
# diagnosis: none
# Without any collective: to rank 0 and back.
import torch
import torch.distributed as dist


def unblock_branch(loss, log):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, other = loss.clone(), torch.empty_like(loss)
    if rank == 0:
        for source in range(1, n):
            dist.recv(other, source)
            total += other
        for goal in range(1, n):
            dist.send(total, goal)
    else:
        dist.send(loss, 0)
        dist.recv(total, 0)
    return total / n
