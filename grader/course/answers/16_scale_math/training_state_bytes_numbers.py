"""You count numbers: there are five of them, of two or four bytes."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return 5 * params
