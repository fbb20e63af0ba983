# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: all but the exact copy
def training_state_bytes(params):
    return (2 + 2 + 4 + 4) * params
