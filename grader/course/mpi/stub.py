"""A stub that holds a rank's place under ``mpiexec``: it sends its environment, and stays.

It is run as a script by its path (``job.py`` beside it), in an interpreter with nothing of this
package on its path, so that it starts in about ten milliseconds; therefore it is a module of its
own.  The rank itself is started by a launcher, and takes over the stub's environment, by which
``mpiexec``'s process manager knows it.
"""

import json
import os
import socket
import sys


def main(address: str) -> None:
    """Send the environment to the socket at ``address``, and wait until that is closed."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(address)
        channel.sendall(json.dumps(dict(os.environ)).encode() + b"\n")
        channel.recv(1)  # nothing is sent: it returns when the other end is closed


if __name__ == "__main__":
    main(sys.argv[1])
