"""torch.zeros makes float32, so whole numbers and float64 lose digits on their way. Let the buffers
have the dtype of send: torch.empty_like(send), or send.clone()."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = (torch.zeros(send.size()) for _ in range(3))
    passing[:] = send
    total[:] = send
    for _ in range(n - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv[:] = total
