"""The ring of a thousand simulated ranks, beside SimGrid's SMPI in the same minute.

SMPI runs an MPI program in C on simulated hosts
(https://simgrid.org/doc/latest/Deploying_SMPI.html); ``apt install libsimgrid-dev`` brings
it.  Both run the same ring on the same flat network, one after the other, each in a
process of its own.  Times are those of the processor, of SMPI with its start, which is
little beside a million messages.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.simulator import ALPHA, BETA, row

SOURCE = Path(__file__).resolve().with_name("smpi_ring.c")

#: Hosts with a full-duplex link each, half of the latency at either end.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="flat" prefix="host-" suffix="" radical="0-{last}" speed="1Gf"
           bw="{bandwidth:.0f}Bps" lat="{latency:.3g}s" sharing_policy="SPLITDUPLEX"/>
</platform>
"""

#: No correction factors, no cost of computing, no copy of small messages.
OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:0",
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/send-is-detached-thresh:0",
    "--cfg=smpi/async-small-thresh:0",
    "--log=root.thres:error",
)


def build(folder: Path) -> Path:
    """Compile the program."""
    program = folder / "ring"
    subprocess.run(["smpicc", "-O2", str(SOURCE), "-o", str(program)], check=True)
    return program


def smpi(program: Path, folder: Path, n: int) -> tuple[float, float]:
    """Seconds of the processor of one run, and virtual seconds."""
    platform, hosts = folder / "platform.xml", folder / "hosts"
    platform.write_text(PLATFORM.format(last=n - 1, bandwidth=1 / BETA, latency=ALPHA / 2))
    hosts.write_text("".join(f"host-{i}\n" for i in range(n)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["smpirun", "-np", str(n), "-platform", platform, "-hostfile", hosts, *OPTIONS, program],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, float(done.stdout.split("virtual seconds")[1])


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    options = parser.parse_args()
    if shutil.which("smpirun") is None:
        print(
            "there is no smpirun here; to install it: apt install libsimgrid-dev", file=sys.stderr
        )
        return 2
    table = Table(title="The same ring, µs of the processor a message")
    for heading in ("ranks", "messages", "ours", "SMPI", "ours / SMPI", "virtual ours", "SMPI"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder)
        for n in options.ranks:
            ours = row("lean", n, 1)
            seconds, virtual = smpi(program, folder, n)
            theirs = 1e6 * seconds / ours["messages"]
            table.add_row(
                f"{n:,}",
                f"{ours['messages']:,}",
                f"{ours['us_per_message']:.2f}",
                f"{theirs:.2f}",
                f"{ours['us_per_message'] / theirs:.2f}",
                f"{2 * (n - 1) * (ALPHA + 4 * BETA):.6g}",
                f"{virtual:.6g}",
            )
    Console(width=80).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
