"""Tokens and parameters are multiplied, not added."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 6 * (tokens + params)
