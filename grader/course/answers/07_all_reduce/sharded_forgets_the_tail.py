"""The last elements are left out: x.numel() // n rounds down. Round up and pad, or split unevenly
with tensor_split."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    size = x.numel() // n
    flat = x.flatten()
    pieces = list(flat[: n * size].tensor_split(n))
    mine = torch.empty_like(pieces[0])
    dist.reduce_scatter(mine, [piece.clone() for piece in pieces], R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather(pieces, mine)
    x.copy_(flat.view_as(x))
