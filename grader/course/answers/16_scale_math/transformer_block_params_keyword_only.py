# exercise: transformer_block_params
# diagnosis: exception
# hint: bare *
# not: keep these parameters
def transformer_block_params(hidden, *, glu):
    return (16 if glu else 12) * hidden**2
