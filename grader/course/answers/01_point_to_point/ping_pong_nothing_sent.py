"""No message was sent: every rank returns its own x."""
# exercise: ping_pong
# diagnosis: wrong_value


def ping_pong(x):
    return x.clone()
