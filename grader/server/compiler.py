"""Runs a compiler on a stranger's source, within limits; started as a program of its own.

It is given a user to become (``-`` for none), a folder to work in, and the
command; the source comes on standard input.  What has been compiled goes to
standard output, and the beginning of what the compiler says to standard error.
It imports nothing of ours, so that it starts in no time, and nothing that is
compiled ever runs here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

#: Seconds of processor time of each of the compiler's processes; torch's headers take twenty.
CPU_SECONDS = 90

#: Bytes that each may map; torch's headers take 1.5 GB.
MEMORY = 4 << 30

#: Bytes of a file that it writes, of the library too.
LARGEST = 64 << 20

#: Bytes of what it says that are passed on.
TOLD = 1 << 16

#: What it writes, in its folder.
LIBRARY = "answer.so"


def main(user: str, folder: str, *command: str) -> int:
    """Compile; the compiler's exit status."""
    if user != "-":
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    for kind, limit in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, LARGEST),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # macOS knows no limit on memory
            resource.setrlimit(kind, (limit, limit))
    os.chdir(folder)
    # its words go to a file, where they are limited like all that it writes
    with open("said", "w+b") as said:
        environment = {**os.environ, "LC_ALL": "C", "TMPDIR": folder}
        status = subprocess.run(
            [*command, "-o", LIBRARY], stdout=said, stderr=said, env=environment, check=False
        ).returncode
        said.seek(0)
        sys.stderr.buffer.write(said.read(TOLD))
    if status == 0:
        with Path(LIBRARY).open("rb") as library:
            shutil.copyfileobj(library, sys.stdout.buffer)
    return min(abs(status), 100)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
