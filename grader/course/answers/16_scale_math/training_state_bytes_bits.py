"""These are bits, 8 times as many. Bytes are asked for."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return 8 * 16 * params
