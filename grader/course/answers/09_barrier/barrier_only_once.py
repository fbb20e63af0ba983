# exercise: barrier
# diagnosis: not_synchronized
# hint: remember something from the call before
# says: in one of the two barriers
# A second call does nothing.
import torch
import torch.distributed as dist

done = []


def barrier():
    if done:
        done.clear()
        return
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()
        step *= 2
    done.append(True)
