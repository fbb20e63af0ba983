"""20 bytes have 4 bytes in place of 2, twice: weights and gradients are bfloat16 here; only the
optimizer's three numbers are float32."""
# exercise: training_state_bytes
# diagnosis: wrong_value


def training_state_bytes(params):
    return 5 * 4 * params
