# exercise: all_to_all
# diagnosis: too_many_bytes
# hint: Everything passes through one rank
# earns: 0.5
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        for chunk in chunks:
            dist.send(chunk, 0)
        result = [torch.empty_like(chunk) for chunk in chunks]
        for chunk in result:
            dist.recv(chunk, 0)
        return result
    table = [[chunk.clone() for chunk in chunks]]
    for src in range(1, n):
        table.append([torch.empty_like(chunk) for chunk in chunks])
        for chunk in table[src]:
            dist.recv(chunk, src)
    for dst in range(1, n):
        for src in range(n):
            dist.send(table[src][dst], dst)
    return [row[0] for row in table]
