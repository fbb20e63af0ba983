"""There is padding inside the result. If each piece has padding of its own, cut it off each piece
before you put them together."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    size = -(-x.numel() // n)
    pieces = [x.new_zeros(size) for _ in range(n)]
    for padded, piece in zip(pieces, x.flatten().tensor_split(n)):
        padded[: len(piece)] = piece
    mine = x.new_empty(size)
    dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather(pieces, mine)
    x.copy_(torch.cat(pieces)[: x.numel()].view_as(x))
