# exercise: step_flops
# diagnosis: wrong_value
# hint: Forward there are two
def step_flops(tokens, params):
    return tokens * params
