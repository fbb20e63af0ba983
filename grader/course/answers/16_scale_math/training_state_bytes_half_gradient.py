# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: which five numbers
def training_state_bytes(params):
    return 15 * params
