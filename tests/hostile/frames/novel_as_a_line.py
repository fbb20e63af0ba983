# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.events import Posted

    event = Posted(0, "recv", 0, 0, "world", 1, 4, "int32", "", True, False, "f" * 5_000_000, 1, 0)
    control().sendall(framed(event))
    return 0, 0
