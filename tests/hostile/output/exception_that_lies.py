# promise: an exception's class and text are data
# exercise: neighbours
# verdict: failed
# diagnosis: exception
class NotImplementedErrorOfMine(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__


NotImplementedErrorOfMine.__name__ = "passed\x1b[31m" * 100_000


def neighbours():
    raise NotImplementedErrorOfMine
