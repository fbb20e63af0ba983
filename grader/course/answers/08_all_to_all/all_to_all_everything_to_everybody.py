# exercise: all_to_all
# diagnosis: too_many_bytes
# hint: send rank dst its chunks[dst]
# earns: 0.5
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.stack(chunks)
    result = [chunks[rank].clone() for _ in range(n)]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(mine, dst)
        theirs = torch.empty_like(mine)
        dist.recv(theirs, src)
        request.wait()
        result[src] = theirs[rank]
    return result
