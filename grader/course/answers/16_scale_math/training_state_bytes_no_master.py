# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: the exact copy of the weight
def training_state_bytes(params):
    return (2 + 2 + 4 + 4) * params
