# exercise: all_to_all_uneven
# diagnosis: wrong_shape
# hint: equal shares
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.tensor_split(n)
    parts = [torch.empty_like(piece) for piece in mine]
    parts[rank].copy_(mine[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine[dst].contiguous(), dst)
        dist.recv(parts[src], src)
        request.wait()
    return torch.cat(parts)
