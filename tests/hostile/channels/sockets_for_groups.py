# promise: ranks pass each other nothing but messages
# exercise: node_groups
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import os
import socket


def hear_myself(family, protocol, address):
    """Send a datagram; that another process could have bound the address needs no second one."""
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as sock:
        sock.bind(address)
        sock.settimeout(1)
        sock.sendto(b"value", sock.getsockname())
        return sock.recv(10)


def listen(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.bind(address)
        return address


#: What a rank could do that may open connections for its groups.
ATTEMPTS = {
    "netlink between users": lambda: hear_myself(socket.AF_NETLINK, 2, (0, 0)),
    "netlink about routes": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).family,
    "udp": lambda: hear_myself(socket.AF_INET, 0, ("127.0.0.1", 0)),
    "udp over version 6": lambda: hear_myself(socket.AF_INET6, 0, ("::1", 0)),
    "a port that is taken": lambda: listen(socket.AF_INET, ("127.0.0.1", 4242)),
    "tcp over version 6": lambda: listen(socket.AF_INET6, ("::1", 4242)),
    "several paths": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).family,
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).family,
    "unix": lambda: socket.socketpair()[0].family,
    "flags of a descriptor": lambda: os.pipe(),
}


def node_groups(ranks_per_node):
    who_am_i()
