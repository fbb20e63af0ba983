# exercise: step_flops
# diagnosis: wrong_value
# hint: They are two operations
def step_flops(tokens, params):
    return 3 * tokens * params
