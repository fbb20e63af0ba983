# exercise: model_params
# diagnosis: wrong_value
# hint: the last digits
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    block = (16 if glu else 12) * hidden * hidden
    rows = max_positions + (vocab if tied_head else 2 * vocab)
    return int(float(layers * block) + float(rows * hidden))
