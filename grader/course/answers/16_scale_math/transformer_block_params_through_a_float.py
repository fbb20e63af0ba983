# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: the last digits
def transformer_block_params(hidden, glu):
    return int((16.0 if glu else 12.0) * (hidden + 0.0) ** 2)
