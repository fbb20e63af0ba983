# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: control, attempts
import socket


def gloo():
    """A connection that this rank has inherited, to connect it anew."""
    for sock in sockets(socket.AF_INET):
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
