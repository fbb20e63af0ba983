"""The last elements are not reduced: the length is not divisible by the number of ranks, and equal
shares leave some over. tensor_split(2) leaves none."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value


def halving_doubling_all_reduce(x, op):
    flat = x.view(-1)
    power = largest_power(dist.get_world_size())
    among_a_power(flat[: len(flat) // power * power], op, halving_and_doubling)
