# exercise: all_to_all_uneven
# diagnosis: wrong_value
# hint: order of your steps
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
    arriving = exchanged(counts)
    parts = [mine[rank]]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine[dst], dst)
        buffer = rows.new_empty((arriving[src], *rows.shape[1:]))
        dist.recv(buffer, src)
        request.wait()
        parts.append(buffer)
    return torch.cat(parts)
