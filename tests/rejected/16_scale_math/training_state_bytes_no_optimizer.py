# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: weights and gradients
def training_state_bytes(params):
    return 4 * params
