# exercise: all_to_all_uneven
# diagnosis: size_mismatch
# hint: exchange the counts first
# Takes every rank to send as much to everybody as rank 0 sends to it.
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = rows.split(counts)
    share = counts[0]
    parts = [rows.new_empty((share, *rows.shape[1:])) for _ in range(n)]
    parts[rank] = mine[rank]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine[dst], dst)
        dist.recv(parts[src], src)
        request.wait()
    return torch.cat(parts)
