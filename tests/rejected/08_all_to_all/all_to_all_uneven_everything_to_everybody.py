# exercise: all_to_all_uneven
# diagnosis: too_many_bytes
# hint: sends all of its rows
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    table = [torch.zeros(n, dtype=torch.int64) for _ in range(n)]
    own = torch.tensor(counts)
    requests = [dist.isend(own, dst) for dst in range(n) if dst != rank]
    requests += [dist.isend(rows, dst) for dst in range(n) if dst != rank]
    parts = []
    for src in range(n):
        if src == rank:
            parts.append(mine[rank])
            continue
        dist.recv(table[src], src)
        theirs = rows.new_empty((int(table[src].sum()), *rows.shape[1:]))
        dist.recv(theirs, src)
        parts.append(theirs.split(table[src].tolist())[rank])
    for request in requests:
        request.wait()
    return torch.cat(parts)
