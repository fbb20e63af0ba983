# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import struct
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    plain = pack(())
    length = struct.unpack("<I", plain[:4])[0]
    deep = b"[" * 700 + b"]" * 700
    value = struct.pack("<I", len(deep)) + deep + plain[4 + length :]
    control().sendall(framed(Returned(value, plain, [], 0)))
    time.sleep(1000)
