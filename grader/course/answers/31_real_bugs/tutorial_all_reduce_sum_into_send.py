"""The sum is made in send itself. The caller still needs its numbers there: add in recv, or in a
copy."""
# exercise: tutorial_all_reduce
# diagnosis: input_changed
# alike: arguments
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming = send.clone(), torch.empty_like(send)
    for _ in range(n - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        send += coming
        passing, coming = coming, passing
    recv.copy_(send)
