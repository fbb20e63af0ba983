# exercise: transformer_block_params
# diagnosis: none
def transformer_block_params(hidden, glu):
    return (12 + 4 * glu) * hidden**2
