"""8 bytes are too few, as if some of the five numbers were left out, or numbers of two bytes were
counted and not bytes. Add up: weights 2, gradients 2, and Adam's three numbers in float32."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (2 + 2 + 2 + 2) * params
