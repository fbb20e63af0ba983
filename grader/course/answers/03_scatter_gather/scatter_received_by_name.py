# exercise: scatter
# diagnosis: deadlock
# hint: every other rank receives from src
# not: leave itself out
# Everybody waits for the rank before them; only src sends.
import torch.distributed as dist


def scatter(out, chunks, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        out.copy_(chunks[src])
        for dst in range(n):
            if dst != src:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, (rank - 1) % n)
