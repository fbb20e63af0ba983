"""One x counts twice, which only SUM, AVG and PRODUCT show: that of the rank that adds up. Its
total begins with its own numbers, and they are combined with it once more. Combine only what the
others send."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value
# or: AVERAGE = "then added"

AVERAGE = "divided last"


def twice(total, own, op):
    n = dist.get_world_size()
    if op == R.AVG and AVERAGE == "then added":
        total /= n
    combine(op, total, own)
    if op == R.AVG and AVERAGE == "divided last":
        total /= n


def all_reduce_rooted(x, op):
    own = x.clone()
    collect(x, op)
    if dist.get_rank() == root_and_others()[0]:
        twice(x, own, op)
    hand_out(x)


def all_reduce_sharded(x, op):
    own = cut(x)[dist.get_rank()].clone()
    mine = shared(x, op)
    twice(mine, own, op)
    x.copy_(gathered(mine, x).view_as(x))
