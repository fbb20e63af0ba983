"""Two hosts and the wire between them, on one machine and without any rights.

A host is a network namespace whose only device is a ``tun``: what the kernel wants
to send is read by the test, held back for as long as the wire takes, and written to
the other host's device.  The traffic is real TCP, the wire is ours, so it is known.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

ADDRESSES = ("10.7.0.1", "10.7.0.2")
DEVICE = "wire"

#: Bytes of a packet: so large that Python keeps up with the wire.
MTU = 9000

_NAMESPACES = ("unshare", "--user", "--map-root-user", "--net")

# <linux/if_tun.h>
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class Wire:
    """Carries packets between two devices, each way on its own.

    Args:
        ends: descriptors of the devices.
        delay: seconds that a packet travels.
        rate: bytes a second that a host can hand to the wire.
    """

    def __init__(self, ends: tuple[int, int], delay: float, rate: float) -> None:
        self._delay, self._rate = delay, rate
        self._stop = os.pipe()
        self._ends = ends
        self._threads = [
            threading.Thread(target=self._carry, args=pair) for pair in (ends, ends[::-1])
        ]
        for thread in self._threads:
            thread.start()

    def _carry(self, source: int, target: int) -> None:
        with contextlib.suppress(OSError):  # a host that has ended takes its device along
            self._carry_on(source, target)

    def _carry_on(self, source: int, target: int) -> None:
        travelling: collections.deque[tuple[float, bytes]] = collections.deque()
        free = 0.0  # when the last packet will have left the source
        while True:
            left = max(0.0, travelling[0][0] - time.monotonic()) if travelling else None
            ready, _, _ = select.select([source, self._stop[0]], [], [], left)
            if self._stop[0] in ready:
                return
            now = time.monotonic()
            if source in ready:
                packet = os.read(source, MTU)
                free = max(now, free) + len(packet) / self._rate
                travelling.append((free + self._delay, packet))
            while travelling and travelling[0][0] <= now:
                os.write(target, travelling.popleft()[1])

    def close(self) -> None:
        """Cut it."""
        os.close(self._stop[1])
        for thread in self._threads:
            thread.join()
        os.close(self._stop[0])
        for end in self._ends:
            os.close(end)


def start_host(number: int, command: list[str], **environment: str) -> tuple[subprocess.Popen, int]:
    """Run a command on a host of its own; its process, and its device."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        me = (str(theirs.fileno()), ADDRESSES[number])
        host = subprocess.Popen(
            [*_NAMESPACES, sys.executable, __file__, *me, *command],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": DEVICE, **environment},
        )
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    if not fds:
        raise OSError(host.communicate()[1].strip())
    return host, fds[0]


def _become_host(handle: str, address: str, *command: str) -> None:
    device = os.open("/dev/net/tun", os.O_RDWR)
    request = struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
    fcntl.ioctl(device, _TUNSETIFF, request)
    for words in (
        f"address add {address}/24 dev {DEVICE}",
        f"link set {DEVICE} mtu {MTU} up",
        "link set lo up",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    with socket.socket(fileno=int(handle)) as other:
        socket.send_fds(other, [b"!"], [device])
    os.close(device)
    os.execv(command[0], command)


if __name__ == "__main__":
    _become_host(*sys.argv[1:])
