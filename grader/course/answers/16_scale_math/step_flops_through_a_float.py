# exercise: step_flops
# diagnosis: wrong_value
# hint: the last digits
def step_flops(tokens, params):
    return int(6.0 * tokens * params)
