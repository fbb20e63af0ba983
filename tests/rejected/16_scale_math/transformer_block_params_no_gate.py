# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: two matrices up
# not: the MLP alone
def transformer_block_params(hidden, glu):
    return 12 * hidden**2
