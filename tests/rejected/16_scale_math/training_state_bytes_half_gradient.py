# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: Take one parameter
def training_state_bytes(params):
    return 15 * params
