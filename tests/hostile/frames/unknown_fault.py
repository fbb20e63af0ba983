# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.events import Violated

    control().sendall(framed(Violated("no_overlap", "hm", "f", 1, 0)))
    return 0, 0
