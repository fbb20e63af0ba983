# exercise: all_to_all_uneven
# diagnosis: none
import torch
import torch.distributed as dist


def swap(outgoing, incoming):
    rank, n = dist.get_rank(), dist.get_world_size()
    incoming[rank].copy_(outgoing[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(outgoing[dst], dst)
        dist.recv(incoming[src], src)
        request.wait()


def all_to_all_uneven(rows, counts):
    arriving = torch.zeros(len(counts), dtype=torch.int64)
    swap(list(torch.tensor(counts).view(-1, 1)), list(arriving.view(-1, 1)))
    result = rows.new_empty((int(arriving.sum()), *rows.shape[1:]))
    swap(rows.split(counts), result.split(arriving.tolist()))
    return result
