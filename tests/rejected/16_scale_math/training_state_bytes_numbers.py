# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: there are five
def training_state_bytes(params):
    return 5 * params
