# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.events import Posted

    event = Posted(0, "send", 0, 0, "world", -5, -20, "int32", "", False, False, "f", 1, 0)
    control().sendall(framed(event))
    return 0, 0
