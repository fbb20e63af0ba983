# promise: an answer takes as much memory of the judge's as it takes room on the wire
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    import struct
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    n = 12_000_000
    value = b"\x92\xa4list\xdd" + struct.pack(">I", n) + b"\x92\xa4list\x90" * (n // 8)
    control().sendall(framed(Returned(value, pack(()), [], 0)))
    time.sleep(1000)
