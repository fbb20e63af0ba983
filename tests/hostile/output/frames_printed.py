# promise: what a rank prints is output and nothing else
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_value
import os


def neighbours():
    from headcount.core.codec import pack
    from headcount.core.wire import _encode
    from headcount.core.wire import Returned

    body = _encode(Returned(pack((0, 0)), pack(()), [], 0))
    for fd in (1, 2):
        os.write(fd, len(body).to_bytes(4, "little") + body)
    return -1, -1
