"""A program that runs a compiler on a submission's source, within limits.

It is run as a script by its path (``sandbox/cpp_build.py``) and imports nothing of this package, so
that it starts fast; therefore it is a module of its own.  Its arguments are a user id to take
(``-`` for none), a folder to work in, three of the limits in :mod:`headcount.core.resource_limits`
(``compiler``, ``compiler_memory`` and ``compiler_file``), and the compiler's command.  The source
comes on standard input; the library goes to standard output, and the beginning of the compiler's
output to standard error.  Nothing that is compiled ever runs here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

#: Bytes of the compiler's output that are passed on.
TOLD = 1 << 16

#: The file name of the library in the folder.
LIBRARY = "answer.so"


def main(user: str, folder: str, seconds: str, memory: str, largest: str, *command: str) -> int:
    """Compile, and return the compiler's exit status."""
    if user != "-":
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    for kind, limit in (
        (resource.RLIMIT_CPU, int(seconds)),
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_FSIZE, int(largest)),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # macOS knows no limit on memory
            resource.setrlimit(kind, (limit, limit))
    os.chdir(folder)
    # its output goes to a file, whose size is limited as that of every file
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
