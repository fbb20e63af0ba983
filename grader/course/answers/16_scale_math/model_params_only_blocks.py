"""There are only blocks here. The embedding is missing, and everything else that has rows of
hidden numbers."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    return layers * block(hidden, glu)
