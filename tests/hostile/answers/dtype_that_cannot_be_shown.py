# promise: an answer that the judge cannot show does not make it fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import time

    import msgspec

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    value = msgspec.msgpack.encode(["large", "bits8", [2]])
    control().sendall(framed(Returned(value, pack(()), [], 0)))
    time.sleep(1000)
