# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: The biases are counted
def transformer_block_params(hidden, glu):
    return (16 if glu else 12) * hidden**2 + (13 if glu else 9) * hidden
