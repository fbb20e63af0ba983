"""Holds a rank's place under ``mpiexec``: tells its surroundings, and stays.

Run as a script by an interpreter with nothing of ours on its path, so that it
starts in some ten milliseconds.  The rank itself is started as always, and
takes over the environment in which ``mpiexec`` expects a rank.
"""

import json
import os
import socket
import sys


def main(address: str) -> None:
    """Say what the environment is to whoever listens at ``address``, and wait for the end."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(address)
        channel.sendall(json.dumps(dict(os.environ)).encode() + b"\n")
        channel.recv(1)  # nobody sends anything: it returns when the other end is gone


if __name__ == "__main__":
    main(sys.argv[1])
