# exercise: model_params
# diagnosis: wrong_value
# hint: counted once
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    block = (16 if glu else 12) * hidden * hidden
    return layers * block + (2 * vocab + max_positions) * hidden
