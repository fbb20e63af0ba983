# exercise: step_flops
def step_flops(tokens, params):
    return 6 * tokens * params
