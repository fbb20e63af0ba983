"""You count a multiplication and its addition as one. They are two operations."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 3 * tokens * params
