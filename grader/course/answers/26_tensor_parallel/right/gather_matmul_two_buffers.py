# exercise: gather_matmul
# diagnosis: none
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    """To the left, with two buffers that take turns."""
    rank, n = dist.get_rank(), dist.get_world_size()
    buffers = [x_shard.clone(), torch.empty_like(x_shard)]
    rows = len(x_shard)
    result = None
    for step in range(n):
        here, there = buffers[step % 2], buffers[1 - step % 2]
        requests = []
        if step + 1 < n:
            requests = dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, here, (rank - 1) % n),
                    dist.P2POp(dist.irecv, there, (rank + 1) % n),
                ]
            )
        product = multiply(here)
        if result is None:
            result = product.new_empty((n * rows, *product.shape[1:]))
        owner = (rank + step) % n
        result[owner * rows : (owner + 1) * rows] = product
        for request in requests:
            request.wait()
    return result
