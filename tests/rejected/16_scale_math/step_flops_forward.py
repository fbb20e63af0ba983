# exercise: step_flops
# diagnosis: wrong_value
# hint: the forward pass
def step_flops(tokens, params):
    return 2 * tokens * params
