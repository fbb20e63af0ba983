# exercise: step_flops
# diagnosis: exception
# hint: may be 0
def step_flops(tokens, params):
    per_token = 6 * params * tokens // tokens
    return per_token * tokens
