# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: the units
def training_state_bytes(params):
    return 10 * params
