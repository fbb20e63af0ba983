# exercise: step_flops
# diagnosis: wrong_value
# hint: 2 operations forward
def step_flops(tokens, params):
    return 12 * tokens * params
