"""Divide only if op is AVG: integers cannot be divided in place."""
# exercise: hierarchical_all_reduce
# diagnosis: exception


def divide(op, mine, k):
    mine /= dist.get_world_size()
