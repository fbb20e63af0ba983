# exercise: all_to_all_uneven
# diagnosis: wrong_shape
# hint: ranks 1 and 2 never meet
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    parts = [rows[:0]] * n
    parts[rank] = mine[rank].clone()
    for step in range(1, n):
        peer = rank ^ step
        if peer < n:
            count = torch.empty(1, dtype=torch.int64)
            requests = [dist.isend(torch.tensor([counts[peer]]), peer)]
            dist.recv(count, peer)
            parts[peer] = rows.new_empty((int(count), *rows.shape[1:]))
            requests.append(dist.isend(mine[peer], peer))
            dist.recv(parts[peer], peer)
            for request in requests:
                request.wait()
    return torch.cat(parts)
