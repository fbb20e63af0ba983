# exercise: step_flops
def step_flops(tokens, params):
    return ((params * tokens) << 2) + ((params * tokens) << 1)
