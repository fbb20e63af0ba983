# exercise: step_flops
# diagnosis: none
def step_flops(tokens, params):
    forward = 2 * tokens * params
    gradient_of_input, gradient_of_weight = forward, forward
    return forward + gradient_of_input + gradient_of_weight
