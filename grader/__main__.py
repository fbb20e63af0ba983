"""``python -m grader``: see :mod:`grader.cli.main`."""

from __future__ import annotations

import sys

from grader.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
