# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: That is attention alone
def transformer_block_params(hidden, glu):
    return 4 * hidden**2
