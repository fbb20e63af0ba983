# promise: what runs when a file is loaded runs in a rank and nowhere else
# exercise: neighbours
# verdict: failed
# diagnosis: exception
import os


class Forked:
    pid = os.fork()


def neighbours():
    return Forked.pid, 0
