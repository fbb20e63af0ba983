# exercise: all_to_all_uneven
# diagnosis: dtype_mismatch
# hint: give both ends the same dtype
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    parts = [None] * n
    parts[rank] = mine[rank]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(torch.tensor([counts[dst]]), dst)
        count = torch.zeros(1, dtype=torch.int32)
        dist.recv(count, src)
        request.wait()
        request = dist.isend(mine[dst], dst)
        parts[src] = rows.new_empty((int(count), *rows.shape[1:]))
        dist.recv(parts[src], src)
        request.wait()
    return torch.cat(parts)
