"""That is one token. Every token goes through all parameters."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 6 * params
