"""One thing of 2 bytes is missing. Add up: weights 2, gradients 2, and Adam's three numbers in
float32."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (2 + 4 + 4 + 4) * params
