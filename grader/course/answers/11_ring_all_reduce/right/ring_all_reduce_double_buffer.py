# exercise: ring_all_reduce
# diagnosis: none
# Two buffers: the next receive is open while what came is combined.
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1 or x.numel() == 0:
        return
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    largest = max(len(chunk) for chunk in chunks)
    buffers = [x.new_empty(largest), x.new_empty(largest)]

    def listen(s):
        size = len(chunks[(rank - s - 1) % n])
        place = buffers[s % 2][:size]
        return place, dist.irecv(place, left)

    place, coming = listen(1)
    for s in range(1, n):
        going = dist.isend(chunks[(rank - s) % n], right)
        coming.wait()
        came = place
        if s < n - 1:
            place, coming = listen(s + 1)
        mine = chunks[(rank - s - 1) % n]
        going.wait()
        if op == dist.ReduceOp.MIN:
            mine[:] = torch.minimum(mine, came)
        elif op == dist.ReduceOp.MAX:
            mine[:] = torch.maximum(mine, came)
        elif op == dist.ReduceOp.PRODUCT:
            mine.mul_(came)
        else:
            mine.add_(came)
    gathered = [dist.irecv(chunks[(rank - s) % n], left) for s in range(1, n)]
    for s, request in enumerate(gathered, 1):
        dist.send(chunks[(rank - s + 1) % n], right)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x.div_(n)
