# exercise: model_params
# diagnosis: wrong_type
# hint: A count is a whole number
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    block = (16 if glu else 12) * hidden * hidden
    rows = max_positions + (vocab if tied_head else 2 * vocab)
    return layers * block + rows * hidden / 1
