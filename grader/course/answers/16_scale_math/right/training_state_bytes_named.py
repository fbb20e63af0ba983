# exercise: training_state_bytes
# diagnosis: none
def training_state_bytes(params):
    weights = gradients = 2 * params
    master = momentum = variance = 4 * params
    return weights + gradients + master + momentum + variance
