"""Nothing was sent: x is as it was on every rank."""
# exercise: broadcast, tree_broadcast
# diagnosis: wrong_value


def broadcast(x, src):
    pass


def tree_broadcast(x, src):
    pass
