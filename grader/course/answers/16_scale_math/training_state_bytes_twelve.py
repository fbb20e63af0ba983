"""12 bytes are the optimizer alone, without weight and gradient; or they are everything but the
exact copy of the weight in float32, which the optimizer keeps beside momentum and variance."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (4 + 4 + 4) * params
