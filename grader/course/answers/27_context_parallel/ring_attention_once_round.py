"""After n − 1 steps every block has been everywhere. The n-th only brings your own back: leave it
out."""
# exercise: ring_attention
# diagnosis: too_many_bytes


def around(k, v):
    rank, n = dist.get_rank(), dist.get_world_size()
    block = torch.stack([k, v])
    for s in range(n):
        came, requests = torch.empty_like(block), []
        if n > 1:
            requests = [dist.isend(block, (rank + 1) % n), dist.irecv(came, (rank - 1) % n)]
        yield (rank - s) % n, block[0], block[1]
        for request in requests:
            request.wait()
        block = came
