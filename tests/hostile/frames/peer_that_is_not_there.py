# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
import os
import socket
import stat


def control():
    """The socket on which this rank speaks with the judge."""
    for fd in range(3, 256):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
        except OSError:
            continue
        sock = socket.socket(fileno=os.dup(fd))
        if sock.family == socket.AF_UNIX:
            return sock
    raise LookupError("no control socket")


def framed(*messages):
    import struct

    import msgspec

    bodies = [msgspec.msgpack.encode(one) for one in messages]
    return b"".join(struct.pack("<I", len(body)) + body for body in bodies)


def neighbours():
    from grader.traffic.events import Posted

    event = Posted(0, "recv", 99, 0, "world", 1, 4, "int32", "", True, False, "f", 1, 0)
    control().sendall(framed(event))
    return 0, 0
