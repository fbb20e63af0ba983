# promise: what is no message ends the world
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    control().sendall(b"\x05\x00\x00\x00hello")
    return 0, 0
