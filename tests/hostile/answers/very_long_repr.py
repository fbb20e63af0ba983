# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_type
class Loud:
    def __repr__(self):
        return "x" * 30_000_000


def neighbours():
    return Loud()
