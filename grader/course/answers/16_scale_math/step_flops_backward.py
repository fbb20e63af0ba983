"""That is the backward pass alone, or forward twice. Backward computes two gradients, that of the
input and that of the weight: twice the work of forward, which comes on top."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return 4 * tokens * params
