# exercise: step_flops
# diagnosis: none
def step_flops(tokens, params):
    return ((params * tokens) << 2) + ((params * tokens) << 1)
