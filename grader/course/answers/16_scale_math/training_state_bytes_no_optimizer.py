"""These are weights and gradients. The optimizer keeps three more numbers."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (2 + 2) * params
