"""No message was sent: every rank returns its own x."""
# exercise: exchange
# diagnosis: wrong_value
# not: what you have received


def exchange(x, peer):
    return x.clone()
