# exercise: ring_reduce_scatter
# diagnosis: none
# The partial result of a step is what came in the step before, with one's own.
import torch
import torch.distributed as dist


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    R = dist.ReduceOp

    def combine(a, b):
        if op == R.MIN:
            return torch.minimum(a, b)
        return torch.maximum(a, b) if op == R.MAX else a + b

    def partial(step):
        mine = chunks[(rank - 1 - step) % n]
        if step == 0:
            return mine.clone()
        buffer = torch.empty_like(mine)
        request = dist.isend(partial(step - 1), (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        return combine(buffer, mine)

    result = partial(n - 1)
    return result / n if op == R.AVG else result
