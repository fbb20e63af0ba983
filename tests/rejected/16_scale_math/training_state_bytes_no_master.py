# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: its exact copy of the weight
# not: without weight and gradient
def training_state_bytes(params):
    return (2 + 2 + 4 + 4) * params
