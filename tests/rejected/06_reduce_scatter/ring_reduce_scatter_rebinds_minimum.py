# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# hint: torch.minimum(a, b) makes a new tensor
# not: off by one | one chunk off | in round s you send
# The indices are right; for MIN and MAX what comes is combined into a tensor that nothing keeps.
import torch
import torch.distributed as dist


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    buffer = torch.empty_like(parts[0])
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        mine = parts[(rank - s - 1) % n]
        if op == dist.ReduceOp.MIN:
            mine = torch.minimum(mine, buffer)
        elif op == dist.ReduceOp.MAX:
            mine = torch.maximum(mine, buffer)
        else:
            mine += buffer
    if op == dist.ReduceOp.AVG:
        parts[rank] /= n
    return parts[rank]
