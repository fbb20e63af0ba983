# promise: no word of a rank can make the judge fail
# exercise: broadcast
# verdict: failed
# diagnosis: tampering
# parts: control


def broadcast(x, src):
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    control().sendall(framed(Returned(pack(None), pack(()), [], 0)))
    time.sleep(1000)
