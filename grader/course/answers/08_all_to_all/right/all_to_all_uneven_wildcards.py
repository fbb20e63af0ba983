# exercise: all_to_all_uneven
# diagnosis: none
# A count from anybody, and then the rows from the same rank.
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = rows.split(counts)
    requests = []
    for dst in range(n):
        if dst != rank:
            requests.append(dist.isend(torch.tensor(counts[dst], dtype=torch.int32), dst, tag=1))
            requests.append(dist.isend(pieces[dst], dst, tag=2))
    found = {rank: pieces[rank]}
    for _ in range(n - 1):
        count = torch.zeros((), dtype=torch.int32)
        src = dist.recv(count, tag=1)
        found[src] = torch.empty((int(count), *rows.shape[1:]), dtype=rows.dtype)
        dist.recv(found[src], src, tag=2)
    for request in requests:
        request.wait()
    return torch.cat([found[src] for src in range(n)])
