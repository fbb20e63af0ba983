"""10 bytes are five numbers of 2 bytes. Adam's three numbers are float32, 4 bytes each."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (2 + 2 + 2 + 2 + 2) * params
