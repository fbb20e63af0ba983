# exercise: step_flops
# diagnosis: wrong_value
# hint: or forward twice
def step_flops(tokens, params):
    return 2 * 2 * tokens * params
