"""A part of attacks: the sockets that a rank has, and how to write to the judge on one."""

import os
import socket
import stat


def sockets(family):
    """Every open socket of a family, each under a descriptor of its own."""
    for fd in range(3, 256):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
        except OSError:
            continue
        sock = socket.socket(fileno=os.dup(fd))
        if sock.family == family:
            yield sock


def control():
    """The socket on which this rank speaks with the judge."""
    for sock in sockets(socket.AF_UNIX):
        return sock
    raise LookupError("no control socket")


def framed(*messages):
    """Messages as they are written on that socket."""
    import struct

    import msgspec

    bodies = [msgspec.msgpack.encode(one) for one in messages]
    return b"".join(struct.pack("<I", len(body)) + body for body in bodies)
