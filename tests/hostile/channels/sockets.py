# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import socket


def fresh(family, kind, address):
    with socket.socket(family, kind) as sock:
        sock.bind(address)
        return address


ATTEMPTS = {
    "tcp": lambda: fresh(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 4242)),
    "udp": lambda: fresh(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 4242)),
    "tcp over version 6": lambda: fresh(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 4242)),
    "abstract": lambda: fresh(socket.AF_UNIX, socket.SOCK_DGRAM, b"\0hostile"),
    "unix": lambda: fresh(socket.AF_UNIX, socket.SOCK_STREAM, "/tmp/hostile"),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).family,
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).family,
    "packet": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).family,
    "vsock": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).family,
    "pair": lambda: socket.socketpair()[0].family,
    "outside": lambda: socket.create_connection(("1.1.1.1", 53), 1).family,
}
