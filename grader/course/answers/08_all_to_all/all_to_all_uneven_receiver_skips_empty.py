# exercise: all_to_all_uneven
# diagnosis: deadlock
# hint: Either both leave it out
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
    parts = [rows.new_empty((k, *rows.shape[1:])) for k in exchanged(counts)]
    parts[rank].copy_(mine[rank])
    requests = [dist.isend(mine[dst], dst) for dst in range(n) if dst != rank]
    for src in range(n):
        if src != rank and len(parts[src]):
            dist.recv(parts[src], src)
    for request in requests:
        request.wait()
    return torch.cat(parts)
