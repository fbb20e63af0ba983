"""18 bytes are 2 too many, as if the gradients were float32. Gradients are bfloat16 here, 2 bytes,
like the weights."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return (2 + 4 + 4 + 4 + 4) * params
