"""What was measured, as a picture: bus bandwidth against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.bench.results import Row
from grader.bench.table import GIGA

__all__ = ["SUFFIXES", "save"]

#: What a picture can be saved as.
SUFFIXES = (".png", ".svg", ".pdf")

#: Told apart by shape as well as by colour.
_MARKERS = "osD^vP*X<>"


def save(path: Path, rows: Sequence[Row], ranks: int) -> None:
    """Draw one line for every name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for number, name in enumerate(dict.fromkeys(row.name for row in rows)):
        mine = [row for row in rows if row.name == name]
        axes.plot(
            [row.nbytes for row in mine],
            [row.busbw / GIGA for row in mine],
            marker=_MARKERS[number % len(_MARKERS)],
            color=f"C{number % 10}",
            label=name,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("size of the whole tensor in bytes")
    axes.set_ylabel("bus bandwidth in GB/s")
    axes.set_title(f"{ranks} ranks" if ranks > 1 else "1 rank")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
