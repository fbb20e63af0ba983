# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: 16h² is a block with a gate
def transformer_block_params(hidden, glu):
    return 16 * hidden**2
