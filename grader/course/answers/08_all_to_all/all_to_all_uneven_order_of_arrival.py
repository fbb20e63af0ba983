# exercise: all_to_all_uneven
# diagnosis: wrong_value
# hint: order of arrival
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    requests = []
    for dst in range(n):
        if dst != rank:
            requests.append(dist.isend(torch.tensor([counts[dst]]), dst))
            requests.append(dist.isend(mine[dst], dst))
    parts = [mine[rank]]
    for _ in range(n - 1):
        count = torch.tensor([0])
        src = dist.recv(count)
        parts.append(rows.new_empty((int(count), *rows.shape[1:])))
        dist.recv(parts[-1], src)
    for request in requests:
        request.wait()
    return torch.cat(parts)
