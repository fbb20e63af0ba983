# exercise: model_params
# diagnosis: exception
# hint: Write max_positions=0
def model_params(hidden, layers, vocab, glu, tied_head, max_positions):
    block = (16 if glu else 12) * hidden * hidden
    rows = max_positions + (vocab if tied_head else 2 * vocab)
    return layers * block + rows * hidden
