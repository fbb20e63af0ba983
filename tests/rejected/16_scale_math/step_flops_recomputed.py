# exercise: step_flops
# diagnosis: wrong_value
# hint: Nothing is recomputed
def step_flops(tokens, params):
    return 8 * tokens * params
