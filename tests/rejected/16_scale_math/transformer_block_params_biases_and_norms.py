# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: Biases and norms
def transformer_block_params(hidden, glu):
    return (16 if glu else 12) * hidden**2 + (17 if glu else 13) * hidden
