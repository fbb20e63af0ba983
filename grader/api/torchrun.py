"""``torchrun``: launch a script with PyTorch's launcher, as in a terminal, without the grader."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from headcount.core.errors import RequestError, is_ours
from headcount.core.resource_limits import valid_sizes
from headcount.core.values import with_article

__all__ = ["torchrun"]

__tracebackhide__ = is_ours


def torchrun(script: str, world_size: int) -> None:
    """Launch processes of a script with ``torchrun``, and show what they print, in rank order.

    They are plain processes, which the grader neither records nor explains.  The script is kept
    in a temporary file while it runs.  If it fails, what the ranks wrote as errors is shown as
    well.

    Args:
        script: the text of a whole program.
        world_size: how many processes.

    Raises:
        RequestError: the script is no text, or the world size no number of ranks.
    """
    if not isinstance(script, str):
        raise RequestError(
            f"torchrun takes the text of a script, not {with_article(type(script).__name__)}"
        )
    (size,) = valid_sizes([world_size])
    options = ["--standalone", f"--nproc_per_node={size}"]
    print("$ torchrun", *options, "script.py")
    with tempfile.TemporaryDirectory() as folder:
        path, logs = Path(folder, "script.py"), Path(folder, "logs")
        path.write_text(script, encoding="utf-8")
        # a file for each rank, so that their lines do not mix
        kept = ["--redirects=3", f"--log-dir={logs}"]
        command = [sys.executable, "-m", "torch.distributed.run", *options, *kept, str(path)]
        status, said = _launched(command)
        written = _written(logs, size, "stdout.log")
        if status:
            # a launcher that starts no rank says so itself
            errors = _written(logs, size, "stderr.log")
            written += errors or said.splitlines()
    for line in written:
        print(line)


def _launched(command: list[str]) -> tuple[int, str]:
    """Run a launcher to its end; return its status, and what it wrote as errors."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as launcher:
        try:
            _, said = launcher.communicate()
        except BaseException:
            _end(launcher)
            raise
    return launcher.returncode, said


def _end(launcher: subprocess.Popen[str]) -> None:
    """Ask a launcher to end, and end what it leaves behind.

    Ranks have sessions of their own, and torch's launcher forgets those that it has started when
    it is interrupted before it has started all.
    """
    if launcher.poll() is not None:
        return  # by itself: Ctrl-C in a terminal reaches it as well
    process = psutil.Process(launcher.pid)
    process.suspend()  # so that it starts none that is not seen here
    ranks = process.children(recursive=True)
    process.terminate()
    process.resume()
    launcher.communicate()
    for rank in ranks:
        with contextlib.suppress(psutil.NoSuchProcess):
            rank.kill()


def _written(logs: Path, size: int, name: str) -> list[str]:
    """Return what the ranks have written into one of their files, in rank order."""
    return [
        f"[rank {rank}] {line.removeprefix(f'[rank{rank}]: ')}"  # as torch marks errors
        for rank in range(size)
        for path in logs.glob(f"*/attempt_0/{rank}/{name}")
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
