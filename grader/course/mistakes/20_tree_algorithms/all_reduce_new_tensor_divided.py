"""x holds no other rank's numbers, although messages were exchanged. Is the sum in another tensor?
`x = x + y` and clone() make new ones; x += y writes into x."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def recursive_doubling_all_reduce(x, op):
    among_a_power(x.clone(), op, doubling)
    divide(op, x, dist.get_world_size())


def halving_doubling_all_reduce(x, op):
    among_a_power(x.clone(), op, halving_and_doubling)
    divide(op, x, dist.get_world_size())
