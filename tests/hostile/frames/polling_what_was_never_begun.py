# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import time

    from headcount.core.events import Polled

    control().sendall(framed(Polled(1 << 62, 0)))
    time.sleep(1000)
