# promise: a rank that hangs up has not answered
# exercise: neighbours
# verdict: failed
# diagnosis: exited
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
    import time

    control().shutdown(socket.SHUT_RDWR)
    time.sleep(1000)
