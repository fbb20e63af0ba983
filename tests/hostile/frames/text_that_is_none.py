# promise: no bytes of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    """A string of MessagePack's that is no UTF-8."""
    control().sendall(b"\x03\x00\x00\x00\x91\xa1\xff")
    return 0, 0
