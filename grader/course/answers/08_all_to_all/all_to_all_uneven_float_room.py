# exercise: all_to_all_uneven
# diagnosis: dtype_mismatch
# hint: rows.new_empty(...)
import torch
import torch.distributed as dist


def exchanged(counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    arriving = torch.tensor(counts)
    outgoing = arriving.clone()
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(outgoing[dst], dst)
        dist.recv(arriving[src], src)
        request.wait()
    return arriving.tolist()


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    parts = [torch.empty((k, *rows.shape[1:])) for k in exchanged(counts)]
    parts[rank] = mine[rank]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine[dst], dst)
        dist.recv(parts[src], src)
        request.wait()
    return torch.cat(parts)
