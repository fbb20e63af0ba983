# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: Gradients are bfloat16
def training_state_bytes(params):
    return 18 * params
