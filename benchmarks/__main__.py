"""Measure what the project has goals for, and print it in one table.

    python -m benchmarks                     all of it (make bench)
    python -m benchmarks engine simulator    parts of it

A goal is for the ratio, where something stands beside the figure; times alone depend on the
machine.  Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from benchmarks import commands, engine, part_two, replay, simulator
from benchmarks.figures import Figure

#: What there is to measure.
PARTS: dict[str, Callable[[], Iterable[Figure]]] = {
    "commands": commands.figures,
    "engine": engine.figures,
    "simulator": simulator.figures,
    "replay": replay.figures,
    "part_two": part_two.figures,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--json", action="store_true")
    request = parser.parse_args(arguments)
    for unknown in set(request.parts) - set(PARTS):
        parser.error(f"there is no part {unknown!r}, only {', '.join(PARTS)}")
    console = Console(highlight=False)
    found: list[Figure] = []
    for part in request.parts or PARTS:
        with Console(stderr=True).status(f"measuring: {part}"):
            found += PARTS[part]()
    if request.json:
        json.dump([{**asdict(one), "met": one.met} for one in found], sys.stdout, indent=1)
        return 0
    table = Table()
    for heading in ("", "cost", "beside", "ratio", "goal", ""):
        table.add_column(
            heading, justify="right" if heading in ("cost", "ratio", "goal") else "left"
        )
    for one in found:
        goal = "" if one.goal is None else f"{one.goal:g}"
        table.add_row(
            one.what,
            f"{one.value:,.{0 if one.value >= 100 else 2}f} {one.unit}",
            one.beside,
            "" if one.ratio is None else f"{one.ratio:.2f}",
            goal if one.ratio is not None or not goal else f"{goal} {one.unit}",
            {None: "", True: "met", False: "missed"}[one.met],
        )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
