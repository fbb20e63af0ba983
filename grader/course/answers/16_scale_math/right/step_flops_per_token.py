# exercise: step_flops
# diagnosis: none
def step_flops(tokens, params):
    per_token = params * 2 + params * 4
    return tokens * per_token
