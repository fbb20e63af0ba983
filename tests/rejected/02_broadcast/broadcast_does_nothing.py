# exercise: broadcast
# diagnosis: wrong_value
# hint: Nothing was sent


def broadcast(x, src):
    pass
