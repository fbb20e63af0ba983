# exercise: tutorial_all_reduce
# diagnosis: none
# The ring in chunks: each goes round twice, first as a growing sum, then whole.
# or: PADDED = True
import torch
import torch.distributed as dist

PADDED = False


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    numbers = send.flatten().clone()
    if PADDED:
        numbers = torch.cat([numbers, numbers.new_zeros(-numbers.numel() % n)])
    chunks = numbers.tensor_split(n)
    for step in range(2 * (n - 1)):
        reducing = step < n - 1
        chunk = chunks[(rank - step - 1) % n]
        came = torch.empty_like(chunk)
        going = chunks[(rank - step) % n]
        request = dist.isend(going, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        chunk.copy_(chunk + came if reducing else came)
    recv.copy_(numbers[: send.numel()].view_as(send))
