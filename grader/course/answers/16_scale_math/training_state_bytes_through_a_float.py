# exercise: training_state_bytes
# diagnosis: wrong_value
# hint: the last digits
def training_state_bytes(params):
    return round(params * 16.000)
