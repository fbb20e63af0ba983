"""That is the forward pass alone. Backward takes twice as many operations: add them."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 2 * tokens * params
