# promise: what a rank says is of bounded length
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import time

    control().sendall(framed(["x" * 10_000_000]))
    time.sleep(1000)
