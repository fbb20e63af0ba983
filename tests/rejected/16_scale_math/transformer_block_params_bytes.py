# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: Elements are asked for
def transformer_block_params(hidden, glu):
    return 2 * (16 if glu else 12) * hidden**2
