# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.events import Completed

    event = Completed(-1, 0)
    control().sendall(framed(event))
    return 0, 0
