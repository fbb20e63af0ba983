# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: the weights alone
def training_state_bytes(params):
    return 2 * params
