# exercise: gather_matmul
# diagnosis: none
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    """Half of the pieces come from the left, the other half from the right."""
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = {+1: n // 2, -1: n - 1 - n // 2}  # pieces that go to the right, and to the left
    requests, sent, products = [], [], {}

    def pass_on(piece, way, step):
        """Send a piece on its way, and note the request of the next one that goes there."""
        if step < steps[way]:
            came = torch.empty_like(piece)
            sent.append(dist.isend(piece, (rank + way) % n, tag=way + 1))
            receive = dist.irecv(came, (rank - way) % n, tag=way + 1)
            requests.append((receive, came, way, step + 1))

    for way in steps:
        pass_on(x_shard, way, 0)
    products[rank] = multiply(x_shard)
    while requests:
        receive, came, way, step = requests.pop(0)
        receive.wait()
        pass_on(came, way, step)
        products[(rank - way * step) % n] = multiply(came)
    for request in sent:
        request.wait()
    return torch.cat([products[owner] for owner in range(n)])
