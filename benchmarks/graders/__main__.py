"""The same submissions graded by nbgrader, by Otter and by ``python -m grader grade``.

Three exercises, `broadcast`, `ring_all_gather` and `ring_all_reduce`, and ten
submissions: seven right ones, written differently, one with a wrong value, one
that deadlocks, one that raises.  nbgrader and Otter have hidden tests as an
instructor writes them (benchmarks/graders/spawned.py): torch.multiprocessing.spawn for
worlds of 2, 3 and 4 ranks, 60 seconds for each.  Ours is used as it is, with
its sandbox: worlds of 1 to 8 ranks, many inputs, limits on traffic.

Each tool grades one submission with one command at a time, and for each
submission the three run one after the other, so that a drift of the machine's
speed hits all alike.  That is how nbgrader and Otter work through a class, too;
ours grades a class with one command and several workers, so it is measured
doing that as well.  CPU is the whole machine's, so nothing else should run
meanwhile.  nbgrader and Otter get a virtual environment each, with the
torch of the Python that runs this; keep them with --environments.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.graders.classwork import EXERCISES, WRONG, submissions
from benchmarks.graders.tools import Measured, Nbgrader, Otter, Ours, Tool
from grader import __version__

OURS, TOGETHER = "Gather Round", "Gather Round, one command"

#: By tool, and by what was measured.
Figures = dict[str, dict[str, float]]

# The environments. ----------------------------------------------------------------


def environment(folder: Path, package: str) -> Path:
    """The Python of a virtual environment with a tool and our torch; made if need be."""
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        torch = importlib.metadata.version("torch").partition("+")[0]
        packages = [f"torch=={torch}", package, "cloudpickle", "ipykernel", "numpy"]
        install = [str(python), "-I", "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, check=True)
        (folder / ".ready").touch()
    return python


def version_of(python: Path, package: str) -> str:
    """The version of a package in an environment."""
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    command = [str(python), "-c", code, package]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# The report. ----------------------------------------------------------------------


def summary(measured: list[Measured]) -> Figures:
    """For each tool: seconds for the right ones and for all, and how many an hour."""
    found = {}
    for tool in dict.fromkeys(one.tool for one in measured):
        mine = [one for one in measured if one.tool == tool]
        right = [one for one in mine if one.kind == "right"]
        found[tool] = {
            "wall_right": statistics.median(one.wall for one in right),
            "cpu_right": statistics.median(one.cpu for one in right),
            "wall": sum(one.wall for one in mine),
            "cpu": sum(one.cpu for one in mine),
            "per_hour": 3600 * len(mine) / sum(one.wall for one in mine),
        }
    return found


def agrees(one: Measured) -> bool:
    """Whether a tool passes what is right, and fails what is not."""
    wrong = {WRONG[one.kind][0]} if one.kind in WRONG else set()
    return one.passed == {name: name not in wrong for name in EXERCISES}


def show(
    console: Console, figures: Figures, measured: list[Measured], versions: Mapping[str, str]
) -> None:
    """Print the tables."""
    ours = figures[OURS]
    count = len({one.submission for one in measured})
    table = Table(title=f"{count} submissions of {len(EXERCISES)} exercises, one after the other")
    for column in ("", "a right one", "CPU", "all", "CPU", "an hour", "wall ÷ ours", "CPU ÷ ours"):
        table.add_column(column, justify="right" if column else "left")
    for tool, row in figures.items():
        table.add_row(
            f"{tool} {versions.get(tool, '')}",
            *(
                f"{row[name]:.1f} s" if name in row else ""
                for name in ("wall_right", "cpu_right", "wall", "cpu")
            ),
            f"{row['per_hour']:.0f}",
            f"{row['wall'] / ours['wall']:.1f}",
            f"{row['cpu'] / ours['cpu']:.1f}",
        )
    console.print(table)
    fastest = max(row["per_hour"] for tool, row in figures.items() if tool not in (OURS, TOGETHER))
    console.print(
        f"{TOGETHER}: {figures[TOGETHER]['per_hour'] / fastest:.1f} times the faster of the others"
    )
    for one in measured:
        if one.kind in WRONG:
            console.print(
                f"{one.kind}, {one.tool} after {one.wall:.1f} s: {one.says}", markup=False
            )
        if not agrees(one):
            console.print(f"{one.tool} misjudges {one.submission} ({one.kind}): {one.passed}")


def main() -> None:
    """Measure, and print or write what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.graders",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--submissions", type=int, default=10, metavar="N", choices=range(1, 11))
    parser.add_argument("--environments", type=Path, metavar="DIR", help="keep them here")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    request = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graders-") as scratch:
        kept = (request.environments or Path(scratch) / "environments").resolve()
        makers: dict[str, tuple[Callable[[str, Path, Path], Tool], str]] = {
            "nbgrader": (Nbgrader, "nbgrader"),
            "Otter": (Otter, "otter-grader"),
        }
        tools, versions = [], {}
        for name, (maker, package) in makers.items():
            python = environment(kept / package, package)
            versions[name] = version_of(python, package)
            tools.append(maker(name, python, Path(scratch) / package))
        versions[OURS] = __version__
        ours = Ours(OURS, Path(sys.executable), Path(scratch) / "ours")
        tools.append(ours)
        console = Console(highlight=False, stderr=request.json)
        measured = []
        for tool in tools:
            tool.prepare()
        handed = submissions(request.submissions)
        for submission in handed:
            for tool in tools:
                one = tool.measure(submission)
                measured.append(one)
                console.print(f"{submission.name}, {submission.kind}: {tool.name} {one.wall:.1f} s")
        wall, cpu = ours.together(handed)
    figures = summary(measured)
    figures[TOGETHER] = {"wall": wall, "cpu": cpu, "per_hour": 3600 * len(handed) / wall}
    if request.json:
        versions["torch"] = importlib.metadata.version("torch")
        rows = [{**asdict(one), "agrees": agrees(one)} for one in measured]
        print(json.dumps({"versions": versions, "summary": figures, "rows": rows}))
    else:
        show(console, figures, measured, versions)


if __name__ == "__main__":
    main()
