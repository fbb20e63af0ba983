"""No message was sent: every rank returns its own x."""
# exercise: shift
# diagnosis: wrong_value


def shift(x, k):
    return x.clone()
