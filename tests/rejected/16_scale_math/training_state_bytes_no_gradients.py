# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: One thing of 2 bytes
def training_state_bytes(params):
    return 14 * params
