# promise: nothing that a rank says costs the judge time
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
import gc
import struct

import msgspec


def pairs(count):
    """Pairs of numbers that all have one hash, by the xxHash that Python uses for tuples."""
    size = 1 << 64
    one, two, five = 11400714785074694791, 14029467366897019727, 2870177450012600261
    inverse, found, first = pow(two, -1, size), [], 0
    while len(found) < count:
        first += 1
        total = (five + first * two) % size
        second = (12345 - (total << 31 | total >> 33) % size * one) * inverse % size
        if second < 2**61 - 1:
            found.append((first, second))
    return found


KEYS = pairs(60_000)
VALUE = b"\xdf" + struct.pack(">I", len(KEYS))
VALUE += b"".join(msgspec.msgpack.encode(key) + b"\x00" for key in KEYS)


def neighbours():
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import FrameWriter, Returned

    # by the rank's own writer: another thread of its would write into the middle of so long a frame
    (writer,) = [one for one in gc.get_objects() if isinstance(one, FrameWriter)]
    writer.write(Returned(VALUE, pack(()), [], 0))
    time.sleep(1000)
