# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: have a matrix each
def transformer_block_params(hidden, glu):
    return (14 if glu else 10) * hidden**2
