# promise: the judge does not wait for the rest of a frame
# exercise: neighbours
# verdict: failed
# diagnosis: timeout or tampering
# parts: control


def neighbours():
    import time

    control().sendall(b"\x10\x00\x00\x00half")
    time.sleep(1000)
