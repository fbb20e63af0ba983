"""``python -m grader``: see :mod:`grader.cli.main`."""

from __future__ import annotations

import gc
import sys

from grader.cli.main import main

if __name__ == "__main__":
    status = main()
    # as it ends, Python looks through all that is alive for garbage, which for torch takes longer
    # than many a request
    gc.freeze()
    sys.exit(status)
