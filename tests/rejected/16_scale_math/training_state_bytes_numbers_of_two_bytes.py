# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: numbers of two bytes
def training_state_bytes(params):
    return 8 * params
