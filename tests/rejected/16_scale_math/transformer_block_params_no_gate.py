# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: two matrices up
def transformer_block_params(hidden, glu):
    return 12 * hidden**2
