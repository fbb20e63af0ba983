# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: the optimizer alone
def training_state_bytes(params):
    return 12 * params
