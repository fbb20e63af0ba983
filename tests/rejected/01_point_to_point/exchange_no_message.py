# exercise: exchange
# diagnosis: wrong_value
# hint: No message was sent
# not: what you have received


def exchange(x, peer):
    return x.clone()
