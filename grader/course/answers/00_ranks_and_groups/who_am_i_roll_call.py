# exercise: who_am_i
# diagnosis: too_many_messages
# hint: No message is needed
# Asks everybody else, though nobody has to be asked.
import torch
import torch.distributed as dist


def who_am_i():
    rank, n = dist.get_rank(), dist.get_world_size()
    count = torch.ones(1, dtype=torch.int64)
    if rank > 0:
        dist.recv(count, rank - 1)
        count += 1
    if rank < n - 1:
        dist.send(count, rank + 1)
    return torch.tensor([rank, n])
