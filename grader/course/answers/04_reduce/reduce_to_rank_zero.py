"""The result is on rank 0. It belongs to dst, which is not always rank 0."""
# exercise: reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != 0:
        dist.send(x, 0)
        return
    buffer = torch.empty_like(x)
    for src in range(1, n):
        dist.recv(buffer, src)
        combine(op, x, buffer)
    finish(op, x, n)
