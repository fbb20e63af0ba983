# promise: the judge does not keep what no answer needs
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


def neighbours():
    sock = control()
    sock.sendall((1 << 29).to_bytes(4, "little"))
    while True:
        sock.sendall(bytes(1 << 20))
