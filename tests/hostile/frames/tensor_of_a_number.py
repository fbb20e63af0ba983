# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import time

    import msgspec
    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    # a buffer of so many bytes, and not of these bytes
    value = msgspec.msgpack.encode(["tensor", "uint8", [1], 10**13])
    control().sendall(framed(Returned(value, pack(()), [], 0)))
    time.sleep(1000)
