"""``python -m grader`` and ``gather-round``: see :mod:`grader.cli.main`."""

from __future__ import annotations

import gc
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

# Python looks for modules in the current folder first, where a student's random.py or yaml.py may
# lie; it would run in this process, and an answer would find what was not handed in with it.  In
# its place is what the command ``gather-round`` has there
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):  # since Python 3.11
    here, sys.path[0] = sys.path[0], str(Path(sys.executable).parent)
    if PathFinder.find_spec("grader") is None:  # a checkout that is not installed
        sys.path.append(here)


def _fix_hash_seed() -> None:
    """Begin again with a fixed hash seed, unless there is one.

    Ranks are forked from the process of ``check`` and have its hash seed; with one at random, the
    order of a set, and with it a verdict, would differ from check to check.
    """
    if sys.argv[1:2] == ["check"] and "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)


def run() -> int:
    """Serve the command line, and return the exit status."""
    _fix_hash_seed()  # before the imports, which it would repeat
    from grader.cli.main import main

    status = main()
    # as it ends, Python looks through all that is alive for garbage, which for torch takes longer
    # than many a request
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(run())
