# exercise: step_flops
# diagnosis: wrong_value
# hint: That is one token
def step_flops(tokens, params):
    return 6 * params
