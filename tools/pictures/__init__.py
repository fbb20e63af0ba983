"""Draws every picture of the course into imgs/: ``make imgs``.

A module ``ch02`` holds the pictures of chapter 02: functions that return a
sheet, listed in its ``PICTURES``.  A picture is named like its function.  Pictures that move are
SVG, and functions that return its text.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.report.drawing import Sheet
from tools.pictures import moving_ring
from tools.pictures.common import card

__all__ = ["MOVING", "PICTURES", "main"]

ROOT = Path(__file__).resolve().parent.parent.parent


def _found() -> dict[str, Callable[[], Sheet]]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    chapters = [importlib.import_module(f"{__name__}.{n}") for n in names if n.startswith("ch")]
    return {draw.__name__: draw for chapter in chapters for draw in chapter.PICTURES}


PICTURES = _found()

#: Pictures that play by themselves, by name.
MOVING = {draw.__name__: draw for draw in moving_ring.MOVING}


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pictures to draw; all if none")
    parser.add_argument("--to", type=Path, default=ROOT / "imgs")
    request = parser.parse_args(arguments)
    known = [*PICTURES, *MOVING]
    unknown = set(request.names) - set(known)
    if unknown:
        print(f"no picture {sorted(unknown)[0]!r}; there are {', '.join(known)}")
        return 2
    request.to.mkdir(parents=True, exist_ok=True)
    for name in request.names or known:
        if name in MOVING:
            (request.to / f"{name}.svg").write_text(MOVING[name](), encoding="utf-8")
        else:
            (request.to / f"{name}.png").write_bytes(card(PICTURES[name]()))
    return 0
