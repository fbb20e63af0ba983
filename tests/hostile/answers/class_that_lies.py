# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_type
class Lying:
    @property
    def __class__(self):
        return tuple

    def __iter__(self):
        return iter((0, 0))

    def __len__(self):
        return 2


def neighbours():
    return Lying()
