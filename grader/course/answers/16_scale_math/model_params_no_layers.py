# exercise: model_params
# diagnosis: exception
# hint: nothing to divide by
# not: left out
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    block = (16 if glu else 12) * hidden * hidden
    rows = max_positions + (vocab if tied_head else 2 * vocab)
    per_layer = rows * hidden // layers
    return layers * (block + per_layer) + rows * hidden % layers
