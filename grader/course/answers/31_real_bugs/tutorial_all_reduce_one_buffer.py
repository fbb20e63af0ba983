# exercise: tutorial_all_reduce
# diagnosis: buffer_race
# hint: still being sent
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    passing, total = send.clone(), send.clone()
    for _ in range(n - 1):
        request = dist.isend(passing, (rank + 1) % n)
        dist.recv(passing, (rank - 1) % n)
        request.wait()
        total += passing
    recv.copy_(total)
