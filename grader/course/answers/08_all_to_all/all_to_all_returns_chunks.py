# exercise: all_to_all
# diagnosis: aliased
# hint: Return a list of your own, with a new tensor
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    for s in range(1, n):
        dst, src = (rank + s) % n, (rank - s) % n
        outgoing = chunks[dst].clone()
        req = dist.isend(outgoing, dst)
        dist.recv(chunks[src], src)
        req.wait()
    return chunks
