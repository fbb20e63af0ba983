# exercise: transformer_block_params
# diagnosis: wrong_value
# hint: a gated MLP alone
def transformer_block_params(hidden, glu):
    return (12 if glu else 8) * hidden**2
