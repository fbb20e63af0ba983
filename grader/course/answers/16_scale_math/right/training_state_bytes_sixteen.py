# exercise: training_state_bytes
# diagnosis: none
def training_state_bytes(params):
    return 16 * params
