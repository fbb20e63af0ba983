"""Runs the engine's tests on another version of torch: ``make torch VERSION=2.11``.

    python -m tools.versions 2.11                # in an environment of its own, build/torch-2.11
    python -m tools.versions nightly -k simulat  # with anything else, which is for pytest

The engine is what depends on torch: the recording group, worlds, simulations and instruments.  The
course itself, its notebooks and reports are tested with the lock's torch alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The tests of the engine, and those of the course that rest on torch's own ways.
ENGINE = (
    "headcount/tests",
    "tests/system/test_private_apis.py",
    "tests/unit/test_compare.py",
    "tests/unit/test_devices.py",
    "tests/grader/test_hangs.py",
    "tests/grader/test_hash_seeds.py",
    "tests/grader/test_instrumentation.py",
    "tests/grader/test_judge.py",
    "tests/grader/test_nccl_semantics.py",
    "tests/grader/test_remarks.py",
    "tests/grader/test_simulated_judge.py",
    "tests/grader/test_simulated_records.py",
    "tests/grader/test_worlds.py",
)


def main(arguments: Sequence[str]) -> int:
    """Install a version of torch and run the tests; 0 if nothing failed."""
    if not arguments or arguments[0].startswith("-"):
        print("Name a version of torch, or nightly: make torch VERSION=2.11", file=sys.stderr)
        return 2
    version, *options = arguments
    venv = ROOT / "build" / f"torch-{version}"
    install = [sys.executable, str(ROOT / "tools" / "install.py"), str(venv), "--torch", version]
    status = subprocess.run(install, cwd=ROOT, check=False).returncode
    if status:
        return status
    python = str(venv / "bin" / "python")
    subprocess.run([python, "-c", "import torch; print('torch', torch.__version__)"], check=True)
    workers = ["-n", str(max(os.cpu_count() or 1, 2)), "--dist", "loadgroup"]
    tests = [python, "-m", "pytest", *workers, *ENGINE, *options]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
