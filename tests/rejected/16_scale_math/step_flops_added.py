# exercise: step_flops
# diagnosis: wrong_value
# hint: not added
def step_flops(tokens, params):
    return 6 * (tokens + params)
