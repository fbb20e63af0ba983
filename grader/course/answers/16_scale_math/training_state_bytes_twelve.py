"""12 bytes a parameter: weight and gradient take 2 each, and the optimizer keeps three numbers
of 4 bytes beside them, an exact copy of the weight, the momentum and the variance. That makes 16."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (4 + 4 + 4) * params
