# exercise: model_params
# diagnosis: none
def block(h, glu):
    return 4 * h * h + (3 if glu else 2) * 4 * h * h


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    total = vocab * hidden
    if not tied_head:
        total += hidden * vocab
    total += max_positions * hidden
    for _ in range(layers):
        total += block(hidden, glu)
    return total
