# exercise: model_params
# diagnosis: wrong_value
# hint: With tied_head neither the embedding nor the
# Tied means no embedding
def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    return layers * hidden * hidden * (16 if glu else 12) + hidden * (
        (0 if tied_head else 2 * vocab) + max_positions
    )
