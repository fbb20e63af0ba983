# promise: a file that never finishes loading is ended
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
# seconds: 8
class Endless(type):
    def __new__(cls, *args):
        while True:
            pass


class Answer(metaclass=Endless):
    pass


def neighbours():
    return 0, 0
