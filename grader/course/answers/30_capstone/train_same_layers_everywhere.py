"""Every stage has the first layers of the model. Stage p begins with layer p · layers // pp."""
# exercise: train
# diagnosis: wrong_value


def layers_of(p, pp, layers):
    return range(layers // pp)
