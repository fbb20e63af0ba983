# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: These are bits
def training_state_bytes(params):
    return 128 * params
