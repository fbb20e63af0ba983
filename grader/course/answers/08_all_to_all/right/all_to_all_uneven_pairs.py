# exercise: all_to_all_uneven
# diagnosis: none
# Blocking calls alone: of two ranks the lower one sends first.
import torch
import torch.distributed as dist


def trade(outgoing, make_room, peer):
    if dist.get_rank() < peer:
        dist.send(outgoing, peer)
        incoming = make_room()
        dist.recv(incoming, peer)
    else:
        incoming = make_room()
        dist.recv(incoming, peer)
        dist.send(outgoing, peer)
    return incoming


def all_to_all_uneven(rows, counts):
    rank, n = dist.get_rank(), dist.get_world_size()
    ends = torch.tensor(counts).cumsum(0).tolist()
    parts = [None] * n
    for low in range(n):
        for high in range(low + 1, n):
            if rank not in (low, high):
                continue
            peer = high if rank == low else low
            count = trade(torch.tensor([counts[peer]]), lambda: torch.tensor([0]), peer).item()
            piece = rows[ends[peer] - counts[peer] : ends[peer]]
            parts[peer] = trade(piece, lambda: rows.new_zeros((count, *rows.shape[1:])), peer)
    parts[rank] = rows[ends[rank] - counts[rank] : ends[rank]].clone()
    return torch.cat(parts)
