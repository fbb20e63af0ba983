# exercise: step_flops
# diagnosis: wrong_type
# hint: A count is a whole number
def step_flops(tokens, params):
    return 6e0 * tokens * params
