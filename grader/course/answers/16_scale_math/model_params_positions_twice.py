"""With a head of its own the positions are counted twice. The head is a second matrix of the
vocabulary; learned positions belong to the embedding alone.
"""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab + max_positions) * (1 if tied_head else 2)
    return layers * block(hidden, glu) + rows * hidden
