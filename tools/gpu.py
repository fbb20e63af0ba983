"""Runs on a machine with GPUs what no other machine can show: ``make gpu``.

Worlds on NCCL, the chapters that meet a GPU, torch's collectives on NCCL and the
benchmarks that use one.  What came of it is written to ``docs/recorded/<device>.md``,
with the versions and the date.  Without a GPU it says so in one line, and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from grader import __version__

ROOT = Path(__file__).resolve().parent.parent

#: What a chapter may do with a GPU it does in these.
CHAPTERS = ("11_ring_all_reduce", "14_bandwidth", "18_profiling", "19_backends")

#: torch's own, in the layout of nccl-tests.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce")

#: Seconds that one step may take.
PATIENCE = 1800.0

#: Lines of a step's output that are written down, from its end.
_LINES = 60


@dataclass(frozen=True)
class Step:
    """Something to run.

    Attributes:
        title: what it shows, as a heading.
        command: the program and its arguments.
    """

    title: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What came of a step.

    Attributes:
        step: what was run.
        status: its exit status; ``None`` if it was stopped for taking too long.
        seconds: how long it took.
        output: what it printed, errors included.
    """

    step: Step
    status: int | None
    seconds: float
    output: str

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        if self.status is None:
            return f"stopped after {PATIENCE:g} s"
        return "passed" if self.status == 0 else f"failed, with status {self.status}"


def steps(gpus: int) -> list[Step]:
    """Return what is run on a machine with so many GPUs."""
    python = sys.executable
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    found = [
        Step("What the machine can do", (python, "-m", "grader", "doctor")),
        Step(
            "NCCL worlds and devices",
            (*pytest, "tests/grader/test_nccl.py", "tests/unit/test_devices.py"),
        ),
        Step(
            "A ring that batches its messages, judged on NCCL",
            (python, "-m", "grader", "check",
             "grader/course/answers/11_ring_all_reduce/right/ring_all_reduce_batch.py",
             "ring_all_reduce", "--backend", "nccl"),
        ),
    ]  # fmt: skip
    for chapter in CHAPTERS:
        # outputs differ with the machine; that no cell raises is what is asked
        notebook = f"solutions/{chapter}.ipynb"
        found.append(
            Step(
                f"Chapter {chapter}", (*pytest, "--nbval-lax", "--nbval-cell-timeout=300", notebook)
            )
        )
    torchrun = (python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}")
    found += [
        Step(
            f"torch's collectives on NCCL, ranks: {gpus}",
            (*torchrun, "-m", "grader", "bench", *COLLECTIVES, "--backend", "nccl"),
        ),
        Step("The layer norm of chapter 18", (python, "-m", "benchmarks.kernels")),
    ]
    return found


def run(step: Step) -> Result:
    """Run a step, and keep what it prints."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as stopped:
        status, output = None, stopped.stdout or b""
    return Result(step, status, time.monotonic() - started, output.decode("utf-8", "replace"))


def device() -> tuple[str, int]:
    """Return the name of the first GPU, and how many there are; ("", 0) without one."""
    import torch

    if not torch.cuda.is_available():
        return "", 0
    return torch.cuda.get_device_name(0), torch.cuda.device_count()


def versions() -> dict[str, str]:
    """Return the versions of all that the results depend on."""
    import torch

    nccl = torch.cuda.nccl.version() if torch.cuda.is_available() else ()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    ) if device()[1] else None  # fmt: skip
    return {
        "grader": f"{__version__} at {commit.stdout.strip() or 'an unknown commit'}",
        "torch": torch.__version__,
        "CUDA": str(torch.version.cuda),
        "NCCL": ".".join(map(str, nccl)),
        "driver": driver.stdout.splitlines()[0] if driver and driver.stdout else "",
        "Python": platform.python_version(),
        "system": platform.platform(terse=True),
    }


def page(name: str, gpus: int, known: dict[str, str], results: Sequence[Result]) -> str:
    """Return what was recorded, in Markdown."""
    lines = [
        f"# {name}",
        "",
        f"Recorded by `make gpu` on {datetime.now(timezone.utc):%Y-%m-%d}, GPUs: {gpus}.",
        "",
        *(f"- {what}: {version}" for what, version in known.items() if version),
        "",
        "| | | seconds |",
        "|---|---|---|",
        *(f"| {one.step.title} | {one.ended} | {one.seconds:.0f} |" for one in results),
    ]
    for one in results:
        told = one.output.replace(str(ROOT), "").rstrip().splitlines()
        program = " ".join(one.step.command).replace(sys.executable, "python")
        lines += ["", f"## {one.step.title}", "", f"`{program}`", "", "```"]
        if len(told) > _LINES:
            lines.append(f"… {len(told) - _LINES} lines")
        lines += [*told[-_LINES:], "```"]
    return "\n".join(lines) + "\n"


def main(
    arguments: Sequence[str] | None = None,
    find: Callable[[], tuple[str, int]] = device,
    plan: Callable[[int], list[Step]] = steps,
    folder: Path = ROOT / "docs" / "recorded",
) -> int:
    """Run every step and write the page; 0 if all passed, or if there is no GPU."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None).parse_args(
        arguments
    )
    name, gpus = find()
    if not gpus:
        print("no GPU here: nothing was run, and nothing recorded")
        return 0
    results = []
    for step in plan(gpus):
        print(f"{step.title} ... ", end="", flush=True)
        results.append(run(step))
        print(f"{results[-1].ended}, {results[-1].seconds:.0f} s", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.md"
    path.write_text(page(name, gpus, versions(), results), encoding="utf-8")
    print(f"written: {path}")
    return int(any(one.status != 0 for one in results))


if __name__ == "__main__":
    sys.exit(main())
