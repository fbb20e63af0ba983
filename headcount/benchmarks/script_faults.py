"""What is said of scripts that break: by ``run``, plain gloo, torch's own checks, and torchfrtrace.

    python -m benchmarks.script_faults [NAME ...] > faults.json    # some 15 minutes
    python -m benchmarks.script_faults --table faults.json > headcount/docs/script_faults.md

The scripts are those of ``tests/scripts/wrong``.  Under plain ``torchrun`` the time limit of a
collective is 8 seconds here and half an hour by default, so that the seconds of a time-out say
nothing; with ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` torch compares the calls before it makes them.
When a rank ends, its flight recorder is dumped, and ``torchfrtrace`` reads the dumps.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "scripts" / "wrong"

#: Seconds of a collective under plain torchrun, and after which everything is killed.
LIMIT, KILLED = 8, 30

#: Runs a script with a shorter time limit, and dumps the flight recorder at its end.
WRAPPER = f"""
import os, runpy, sys, threading, time
from datetime import timedelta
os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"
import torch
from torch.distributed import distributed_c10d as c10d
c10d.default_pg_timeout = timedelta(seconds={LIMIT})

def dump():
    path = os.path.join(os.environ["DUMPS"], "rank_" + os.environ["RANK"])
    with open(path, "wb") as file:
        file.write(torch._C._distributed_c10d._dump_fr_trace())

def later():
    time.sleep({LIMIT} - 3)
    dump()

threading.Thread(target=later, daemon=True).start()
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    dump()
"""


@dataclass(frozen=True)
class Said:
    """What came of a script.

    Attributes:
        seconds: until the command ended.
        status: its exit status; None if it was killed.
        text: what it printed.
    """

    seconds: float
    status: int | None
    text: str

    def line(self) -> str:
        """Return the line that says most: the last error that names itself."""
        errors = re.findall(r"^(?:\[rank\d+\]: *)?(\w*(?:Error|Exception)): (.+)$", self.text, re.M)
        words = [f"{name}: {text}" for name, text in errors if name != "ChildFailedError"]
        if not words and "Signal" in self.text:
            words = re.findall(r"Signal \d+ \(\w+\)", self.text)[:1]
        return words[0][:110] if words else ""


def execute(command: Sequence[str], folder: str, variables: Mapping[str, str]) -> Said:
    """Run a command in a folder, and end it after a while."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables}, start_new_session=True,
        )  # fmt: skip
        try:
            status: int | None = process.wait(KILLED)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, 9)
            process.wait()
        seconds = time.monotonic() - began
        output.seek(0)
        return Said(seconds, status, output.read().decode("utf-8", "replace"))


def compare(path: Path) -> dict[str, object]:
    """Run a script in every way."""
    ranks = re.findall(r"^# ranks: (\d+)", path.read_text(), re.M)[0]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    found: dict[str, object] = {"script": path.stem}
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder, "wrapper.py")
        wrapper.write_text(WRAPPER)
        dumps = Path(folder, "dumps")
        dumps.mkdir()
        ways = {
            "run": (["-m", "headcount", "run", "--timeout", "10", "--ranks", ranks, str(path)], {}),
            "gloo": ([*torchrun, str(wrapper), str(path)], {"DUMPS": str(dumps)}),
            "DETAIL": (
                [*torchrun, str(wrapper), str(path)],
                {"DUMPS": folder, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
            ),
            "torchfrtrace": (
                ["-m", "torch.distributed.flight_recorder.fr_trace", str(dumps)],
                {},
            ),
        }
        for name, (command, variables) in ways.items():
            said = execute(command, folder, variables)
            line = said.line()
            if name == "run":
                line = " ".join(said.text.split("✗")[-1].split("  ")[0].split())[:200]
            if name == "torchfrtrace" and not line:
                line = "; ".join(re.findall(r"(?:missing ranks|error msg): .+", said.text)[:1])
            found[name] = {"seconds": round(said.seconds, 1), "status": said.status, "says": line}
    return found


#: What a line of a report amounts to, by what stands in it; the first that fits counts.
MEANINGS = (
    ("Detected mismatch", "names the two calls"),
    ("failed to pass monitoredBarrier", "names the rank that is missing, at the time limit"),
    ("Timed out", "a time limit"),
    ("monitoredBarrier", "a connection that is closed"),
    ("Connection closed", "a connection that is closed"),
    ("running the callback", "a connection that is closed"),
    ("SIGSEGV", "the ranks crash"),
    ("SIGTERM", "a rank has died"),
    ("KeyError", "stops with a KeyError"),
    ("EOFError", "stops: a dump is empty"),
    ("Missing dump", "stops: a dump is missing"),
)


def meaning(said: Mapping[str, Any]) -> str:
    """Return in a few words what has been said."""
    if said["status"] is None:
        return f"nothing in {KILLED} s"
    words = next((words for text, words in MEANINGS if text in said["says"]), "")
    return words or ("the script's own exception" if said["says"] else "nothing")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a page with what each script got."""
    lines = [
        "# What each tool says of scripts that break",
        "",
        f"torch {torch.__version__}, `python -m benchmarks.script_faults`. The time limit of a"
        f" collective was {LIMIT} s in plain gloo and under `TORCH_DISTRIBUTED_DEBUG=DETAIL`, and"
        " is half an hour by default. The seconds of `run` are those from the first line to the"
        " verdict, the others those of the whole command.",
        "",
        "| script | `run` | plain gloo | DETAIL | `torchfrtrace` |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: str(row["script"])):
        name, ours = row["script"], row["run"]
        verdict, _, rest = ours["says"].partition(" after ")
        cells = [f"[{name}](../../tests/scripts/wrong/{name}.py)"]
        cells.append(f"{verdict}, after {rest.split(' s:')[0]} s")
        for way in ("gloo", "DETAIL", "torchfrtrace"):
            cells.append(f"{meaning(row[way])} ({row[way]['seconds']:.0f} s)")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line of JSON for each script, or the table of such lines."""
    wanted = list(sys.argv[1:] if arguments is None else arguments)
    if wanted[:1] == ["--table"]:
        records = Path(wanted[1]).read_text().splitlines()
        print(table([json.loads(record) for record in records]))
        return 0
    for path in sorted(SCRIPTS.glob("*.py")):
        if not wanted or path.stem in wanted:
            print(json.dumps(compare(path), ensure_ascii=False), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
