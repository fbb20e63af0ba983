# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: goes through a matrix as well
def transformer_block_params(hidden, glu):
    return (15 if glu else 11) * hidden**2
