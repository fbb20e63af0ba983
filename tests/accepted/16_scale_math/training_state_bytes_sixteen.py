# exercise: training_state_bytes
def training_state_bytes(params):
    return 16 * params
