"""That is one operation for each token and parameter. Forward there are two, backward four."""
# exercise: step_flops
# diagnosis: wrong_value


def step_flops(tokens, params):
    return tokens * params
