# exercise: transformer_block_params
# diagnosis: exception
# hint: by name only
# not: keep these parameters
def transformer_block_params(hidden, *, glu):
    return (16 if glu else 12) * hidden**2
