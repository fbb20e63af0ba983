# exercise: training_state_bytes
# diagnosis: wrong_type
# hint: A count is a whole number
def training_state_bytes(params):
    return params * 1.6e1
