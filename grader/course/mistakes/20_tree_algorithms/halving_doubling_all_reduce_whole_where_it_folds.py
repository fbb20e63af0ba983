"""Whole tensors are exchanged. After the first exchange a rank needs the sum of one half only, so
send a half, then a quarter, then an eighth."""
# exercise: halving_doubling_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5


def halving_doubling_all_reduce(x, op):
    power = largest_power(dist.get_world_size())
    whole = power < dist.get_world_size()
    among_a_power(x, op, doubling if whole else halving_and_doubling)
