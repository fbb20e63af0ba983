"""chunks is None on every rank but src: only src may look inside."""
# exercise: scatter
# diagnosis: exception
# or: LOOKS = "at an entry"
# or: LOOKS = "at all of them"
import torch.distributed as dist

LOOKS = "at the length"


def scatter(out, chunks, src):
    rank = dist.get_rank()
    if LOOKS == "at the length":
        n = len(chunks)
    elif LOOKS == "at an entry":
        own = chunks[rank]
    else:
        own = [chunk for chunk in chunks]
    if rank == src:
        out.copy_(chunks[src])
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, src)
