"""What the mistakes of this chapter share."""

import torch
import torch.distributed as dist


def others():
    """Whom to send to and whom to receive from, step by step."""
    rank, n = dist.get_rank(), dist.get_world_size()
    return [((rank + step) % n, (rank - step) % n) for step in range(1, n)]


def swap(out, dst, into, src):
    request = dist.isend(out, dst)
    dist.recv(into, src)
    request.wait()


def exchanged(chunks):
    """An all-to-all of chunks of one size."""
    result = [chunk.clone() for chunk in chunks]
    for dst, src in others():
        swap(chunks[dst], dst, result[src], src)
    return result


def told(counts):
    """How many rows come from each rank."""
    return [int(count) for count in exchanged([torch.tensor([count]) for count in counts])]


def room(rows, k):
    return rows.new_empty((k, *rows.shape[1:]))


def arrived(rows, counts, mine, arriving):
    """The pieces that arrive, in rank order."""
    parts = [room(rows, k) for k in arriving]
    parts[dist.get_rank()] = mine[dist.get_rank()]
    for dst, src in others():
        swap(mine[dst], dst, parts[src], src)
    return parts
