# exercise: step_flops
# diagnosis: wrong_value
# hint: That is the backward pass
def step_flops(tokens, params):
    return 4 * tokens * params
