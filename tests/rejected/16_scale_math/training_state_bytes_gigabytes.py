# exercise: training_state_bytes
# diagnosis: wrong_type
# hint: These are gigabytes
def training_state_bytes(params):
    return 16 * params / 1e9
