# exercise: all_to_all_uneven
# diagnosis: too_many_bytes
# hint: without padding
# not: sends all of its rows
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
    largest = torch.tensor([max(counts)])
    everybody = [largest.clone() for _ in range(n)]
    requests = [dist.isend(largest, dst) for dst in range(n) if dst != rank]
    for src in range(n):
        if src != rank:
            dist.recv(everybody[src], src)
    for request in requests:
        request.wait()
    room = max(int(count) for count in everybody)

    outgoing = [rows.new_zeros((room, *rows.shape[1:])) for _ in range(n)]
    incoming = [rows.new_zeros((room, *rows.shape[1:])) for _ in range(n)]
    for piece, padded in zip(mine, outgoing):
        padded[: len(piece)] = piece
    incoming[rank].copy_(outgoing[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(outgoing[dst], dst)
        dist.recv(incoming[src], src)
        request.wait()
    return torch.cat([padded[:k] for padded, k in zip(incoming, arriving)])
