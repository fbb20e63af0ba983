# exercise: all_to_all_uneven
# diagnosis: none
# Everybody tells everybody all of its counts; pairs without rows leave the message out.
import torch
import torch.distributed as dist


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    table = torch.zeros(n, n, dtype=torch.int64)
    table[rank] = torch.tensor(counts)
    mine = table[rank].clone()
    requests = [dist.irecv(table[src], src) for src in range(n) if src != rank]
    requests += [dist.isend(mine, dst) for dst in range(n) if dst != rank]
    for request in requests:
        request.wait()

    starts = [sum(counts[:dst]) for dst in range(n)]
    parts = [torch.zeros((int(k), *rows.shape[1:]), dtype=rows.dtype) for k in table[:, rank]]
    operations = []
    for peer in range(n):
        piece = rows[starts[peer] : starts[peer] + counts[peer]]
        if peer == rank:
            parts[peer] = piece
            continue
        if counts[peer]:
            operations.append(dist.P2POp(dist.isend, piece, peer))
        if len(parts[peer]):
            operations.append(dist.P2POp(dist.irecv, parts[peer], peer))
    if operations:
        for request in dist.batch_isend_irecv(operations):
            request.wait()
    return torch.cat(parts)
