# exercise: model_params
# diagnosis: wrong_value
# hint: a gated block has 16h²
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    block = (16 if glu else 12) * hidden * hidden
    rows = max_positions + (vocab if tied_head else 2 * vocab)
    return layers * 12 * hidden**2 + rows * hidden
