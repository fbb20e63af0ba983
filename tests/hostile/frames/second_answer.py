# promise: a rank answers once
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    answer = Returned(pack((0, 0)), pack(()), [], 0)
    control().sendall(framed(answer, answer))
    return 0, 0
