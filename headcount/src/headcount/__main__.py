"""``python -m headcount`` and ``headcount``: see :mod:`headcount.cli`."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

# Python looks for modules in the current folder first, where a script's own yaml.py may lie; it
# would run in this process.  In its place is what the command ``headcount`` has there
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):  # since Python 3.11
    here, sys.path[0] = sys.path[0], str(Path(sys.executable).parent)
    if PathFinder.find_spec("headcount") is None:  # a checkout that is not installed
        sys.path.append(here)


def run() -> int:
    """Serve the command line, and return the exit status."""
    from headcount.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
