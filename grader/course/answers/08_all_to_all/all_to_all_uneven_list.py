# exercise: all_to_all_uneven
# diagnosis: wrong_type
# hint: torch.cat joins
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = [piece.clone() for piece in rows.split(counts)]
    parts = [None] * n
    parts[rank] = mine[rank]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(torch.tensor([counts[dst]]), dst)
        count = torch.tensor([0])
        dist.recv(count, src)
        request.wait()
        request = dist.isend(mine[dst], dst)
        parts[src] = rows.new_empty((int(count), *rows.shape[1:]))
        dist.recv(parts[src], src)
        request.wait()
    return parts
