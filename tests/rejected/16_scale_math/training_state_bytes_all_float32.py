# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: 4 bytes in place of 2
def training_state_bytes(params):
    return 20 * params
