# promise: no rank can make its failure look like the grader's
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
    from grader.worlds.wire import Raised

    control().sendall(framed(Raised("join", "OSError", "the network is down", [])))
    return 0, 0
