# exercise: all_to_all
# diagnosis: too_many_bytes
# hint: Everything passes through one rank
# Everything in one piece to rank 0, and everybody's column in one piece back.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.stack(chunks)
    if rank != 0:
        dist.send(mine, 0)
        dist.recv(mine, 0)
        return list(mine)
    table = [mine, *(torch.empty_like(mine) for _ in range(n - 1))]
    for src in range(1, n):
        dist.recv(table[src], src)
    for dst in range(1, n):
        dist.send(torch.stack([row[dst] for row in table]), dst)
    return [row[0].clone() for row in table]
