# exercise: step_flops
# diagnosis: none
def step_flops(tokens, params):
    return 6 * tokens * params
