# exercise: training_state_bytes
# diagnosis: none
def training_state_bytes(params):
    return params << 4
