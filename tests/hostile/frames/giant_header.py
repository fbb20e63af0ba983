# promise: no frame is believed to be gigabytes long
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    control().sendall(b"\xff\xff\xff\xff")
    return 0, 0
