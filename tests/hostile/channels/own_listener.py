# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
import os
import socket
import stat


def gloo():
    """A connection that this rank has inherited, to connect it anew."""
    for fd in range(3, 256):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
        except OSError:
            continue
        sock = socket.socket(fileno=os.dup(fd))
        if sock.family == socket.AF_INET:
            return sock
    raise LookupError("alone in the world")


ATTEMPTS = {
    "connect": lambda: gloo().connect(("127.0.0.1", 1)),
    "dissolve": lambda: gloo().connect((None, 0)),
    "listen": lambda: gloo().listen(),
    "accept": lambda: gloo().accept(),
    "bind": lambda: gloo().bind(("127.0.0.1", 4242)),
    "look at the other side's window": lambda: gloo().getsockopt(6, 11, 200),
    "change the window": lambda: gloo().setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096),
}


def who_am_i():
    found = []
    for name, attempt in ATTEMPTS.items():
        try:
            found.append((name, attempt()))
        except Exception as error:
            print(name, type(error).__name__)
    if found:
        print("BREACH", found)
        return
    raise PermissionError("every way is closed")
