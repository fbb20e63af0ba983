# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: five numbers of 2 bytes
def training_state_bytes(params):
    return 10 * params
