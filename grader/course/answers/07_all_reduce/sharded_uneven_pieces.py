"""The pieces are too uneven: one of them is longer than ⌈K/n⌉ of K elements, so too much is sent. Cut
with tensor_split(n), whose pieces differ by one element at most, or round up and pad.
"""
# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# earns: 0.5
# or: LONGEST = "the first"

#: Which piece takes the whole remainder.
LONGEST = "the last"


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = x.numel() // n
    rest = x.numel() - size * (n - 1)
    sizes = [size] * (n - 1) + [rest] if LONGEST == "the last" else [rest] + [size] * (n - 1)
    pieces = list(x.flatten().split(sizes))
    mine = pieces[rank].clone()
    for _, came in exchanged(pieces.__getitem__, lambda _: mine):
        combine(op, mine, came)
    if op == R.AVG:
        mine /= n
    for other, came in exchanged(lambda _: mine, pieces.__getitem__):
        pieces[other] = came
    pieces[rank] = mine
    x.copy_(torch.cat(pieces).view_as(x))
