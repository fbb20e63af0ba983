# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: the MLP alone
# not: two matrices up
def transformer_block_params(hidden, glu):
    return (12 if glu else 8) * hidden**2
