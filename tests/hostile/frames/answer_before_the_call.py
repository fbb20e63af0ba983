# promise: no word of a rank can make the judge wait beyond a limit
# exercise: broadcast
# verdict: failed
# diagnosis: tampering
# parts: control


def claim():
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    control().sendall(framed(Returned(pack(None), pack(()), [], 0)))
    time.sleep(1000)


def broadcast(x, src, claimed=claim()):
    pass
