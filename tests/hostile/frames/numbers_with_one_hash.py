# promise: nothing that a rank says costs the judge time
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import time

    import msgspec
    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    # Python's hash of a whole number is its remainder
    value = ["set", [["int", str(k * (2**61 - 1))] for k in range(60_000)]]
    control().sendall(framed(Returned(msgspec.msgpack.encode(value), pack(()), [], 0)))
    time.sleep(1000)
