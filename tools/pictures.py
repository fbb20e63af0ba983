"""Draws every picture of the course into imgs/: ``make imgs``."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.drawing import FAINT, INK, Cell, Sheet, before_after, colour_of

ROOT = Path(__file__).resolve().parent.parent

N = 4
NAMES = "ABCD"

#: The root of the pictures: not rank 0, so that nobody takes 0 for a rule.
ROOT_RANK = 1

EMPTY = Cell()


def _own(rank: int, still: bool = False) -> Cell:
    return Cell(NAMES[rank], (rank,), still)


def ranks() -> Sheet:
    """One program, four processes, four memories."""
    sheet = Sheet(8, 2.75)
    sheet.cell(0.4, 2.0, 7.2, 0.55, Cell())
    sheet.text(4, 2.27, "one program:  rank = dist.get_rank();  x = torch.tensor(rank)", 11)
    for rank in range(N):
        x = 0.6 + rank * 1.8
        sheet.arrow((x + 0.7, 1.98), (x + 0.7, 1.36))
        sheet.rank(x, 0.45, 1.4, 0.85, rank)
        sheet.cell(x + 0.2, 0.62, 1.0, 0.45, Cell(f"x = {rank}", (rank,)))
    return sheet


def ring() -> Sheet:
    """Ranks on a ring, and the neighbours of one of them."""
    sheet, size = Sheet(5, 3.6), 5
    cx, cy, radius = 2.5, 1.75, 1.25
    places = [
        (
            cx + radius * math.sin(2 * math.pi * rank / size),
            cy + radius * math.cos(2 * math.pi * rank / size),
        )
        for rank in range(size)
    ]
    for rank, (x, y) in enumerate(places):
        nx, ny = places[(rank + 1) % size]
        length = math.dist((x, y), (nx, ny))
        dx, dy = (nx - x) / length, (ny - y) / length
        sheet.arrow((x + 0.38 * dx, y + 0.38 * dy), (nx - 0.38 * dx, ny - 0.38 * dy), colour=FAINT)
    for rank, (x, y) in enumerate(places):
        sheet.cell(x - 0.3, y - 0.22, 0.6, 0.44, Cell(str(rank), (rank,)))
    x, y = places[0]
    sheet.text(x, y + 0.42, "rank 0", 10, bold=True)
    sheet.text(places[4][0] - 0.1, places[4][1] + 0.42, "left of rank 0", 10)
    sheet.text(places[1][0] + 0.1, places[1][1] + 0.42, "right of rank 0", 10)
    return sheet


def send_recv() -> Sheet:
    """A send that comes early waits for its receive."""
    sheet = Sheet(8, 2.5)
    for y, rank in ((1.75, 0), (0.75, 1)):
        sheet.text(0.55, y, f"rank {rank}", 11, bold=True)
        sheet.axes.plot([1.1, 7.7], [y, y], color="#cccccc", lw=1, zorder=0)
    sheet.bar(1.2, 1.75, 0.8, "work", FAINT)
    sheet.bar(2.0, 1.75, 3.1, "send(x, 1): waits for the receive", colour_of(1), hatch="")
    sheet.bar(5.1, 1.75, 1.2, "moves x", colour_of(2))
    sheet.bar(6.3, 1.75, 1.3, "work", FAINT)
    sheet.bar(1.2, 0.75, 3.9, "work", FAINT)
    sheet.bar(5.1, 0.75, 1.2, "recv(y, 0)", colour_of(2))
    sheet.bar(6.3, 0.75, 1.3, "work", FAINT)
    sheet.arrow((5.3, 1.58), (6.05, 0.93), colour=INK)
    sheet.arrow((1.2, 0.22), (7.6, 0.22), colour=FAINT, width=1)
    sheet.text(7.2, 0.37, "time", 9, colour=FAINT)
    return sheet


def head_to_head() -> Sheet:
    """Two blocking sends wait for each other; two ways out."""
    sheet = Sheet(8, 2.6)
    panels = (
        ("both send first: a cycle", ("send(x, 1)", "recv(y, 1)"), ("send(x, 0)", "recv(y, 0)")),
        ("one receives first", ("send(x, 1)", "recv(y, 1)"), ("recv(y, 0)", "send(x, 0)")),
        ("both start with isend", ("isend(x, 1)", "recv(y, 1)"), ("isend(x, 0)", "recv(y, 0)")),
    )
    for i, (title, left, right) in enumerate(panels):
        x0 = 0.25 + i * 2.6
        good = i > 0
        colour = colour_of(2) if good else colour_of(5)
        sheet.text(x0 + 1.15, 2.35, ("✓ " if good else "✗ ") + title, 10, bold=True)
        for column, (rank, calls) in enumerate(((0, left), (1, right))):
            x = x0 + column * 1.3
            sheet.rank(x, 0.5, 1.0, 1.45, rank)
            for row, call in enumerate(calls):
                y = 1.42 - row * 0.62
                waits = not good and row == 0
                cell = Cell(call, (5,) if waits else (2,) if good else ())
                sheet.cell(x + 0.04, y, 0.92, 0.42, cell)
        if i == 0:
            sheet.arrow((x0 + 1.0, 1.74), (x0 + 1.3, 1.74), colour=colour, bend=-0.3)
            sheet.arrow((x0 + 1.3, 1.52), (x0 + 1.0, 1.52), colour=colour, bend=-0.3)
        elif i == 1:
            sheet.arrow((x0 + 1.0, 1.63), (x0 + 1.3, 1.63), colour=colour)
            sheet.arrow((x0 + 1.3, 1.01), (x0 + 1.0, 1.01), colour=colour)
        else:
            sheet.arrow((x0 + 1.0, 1.55), (x0 + 1.3, 1.05), colour=colour)
            sheet.arrow((x0 + 1.3, 1.55), (x0 + 1.0, 1.05), colour=colour)
    return sheet


def shift() -> Sheet:
    """Everybody's x moves one rank on."""
    before = [[_own(rank)] for rank in range(N)]
    after = [[_own((rank - 1) % N)] for rank in range(N)]
    return before_after("shift by 1", before, after)


def broadcast() -> Sheet:
    """Everyone ends with the root's x."""
    before = [[_own(rank, rank == ROOT_RANK)] for rank in range(N)]
    after = [[_own(ROOT_RANK, rank == ROOT_RANK)] for rank in range(N)]
    return before_after("broadcast", before, after)


def broadcast_rounds() -> Sheet:
    """Who sends in which round: a flat broadcast and a binomial tree."""
    sheet, size = Sheet(8, 4.2), 8
    flat = [[(0, rank)] for rank in range(1, size)]
    tree = [[(r, r + step) for r in range(step)] for step in (1, 2, 4)]
    for x0, rounds, title in (
        (0.9, flat, "flat: 7 rounds"),
        (4.9, tree, "binomial tree: 3 rounds"),
    ):
        sheet.text(x0 + 1.35, 4.0, title, 11, bold=True)
        for rank in range(size):
            x = x0 + rank * 0.38
            sheet.text(x, 3.65, str(rank), 10)
        for i, messages in enumerate([[], *rounds]):
            y = 3.35 - i * 0.42
            has = {0} | {dst for past in rounds[:i] for _, dst in past}
            sheet.text(x0 - 0.42, y, "start" if i == 0 else f"round {i}", 8, colour=FAINT)
            for rank in range(size):
                cell = Cell("", (0,) if rank in has else ())
                sheet.cell(x0 + rank * 0.38 - 0.12, y - 0.11, 0.24, 0.22, cell)
            for src, dst in messages:
                start = (x0 + src * 0.38, y + 0.31)
                sheet.arrow(start, (x0 + dst * 0.38, y + 0.12), colour=colour_of(5), width=1.1)
    return sheet


def _pieces(still: bool) -> list[Cell]:
    return [Cell(f"x{rank}", (rank,), still and rank == ROOT_RANK) for rank in range(N)]


def scatter() -> Sheet:
    """The root hands out one piece to each."""
    before = [_pieces(True) if rank == ROOT_RANK else [EMPTY] for rank in range(N)]
    after = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    return before_after("scatter", before, after)


def gather() -> Sheet:
    """The root collects one piece from each."""
    before = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    after = [
        _pieces(True) if rank == ROOT_RANK else [Cell(f"x{rank}", (rank,), True)]
        for rank in range(N)
    ]
    return before_after("gather", before, after)


def reduce() -> Sheet:
    """The root ends with the sum; the others keep what they had."""
    before = [[_own(rank, rank == ROOT_RANK)] for rank in range(N)]
    total = Cell("+".join(NAMES), tuple(range(N)))
    after = [[total if rank == ROOT_RANK else _own(rank, True)] for rank in range(N)]
    return before_after("reduce", before, after)


def reduce_tree() -> Sheet:
    """A sum on a binomial tree: the broadcast's arrows turned round."""
    sheet, size = Sheet(8, 2.75), 8
    xs = [0.9 + rank * 0.92 for rank in range(size)]
    contents: list[set[int]] = [{rank} for rank in range(size)]
    rounds = [[(r + step, r) for r in range(0, size, 2 * step)] for step in (1, 2, 4)]
    for i, messages in enumerate([[], *rounds]):
        y = 2.3 - i * 0.66
        sheet.text(0.3, y, "start" if i == 0 else f"round {i}", 8, colour=FAINT)
        for src, dst in messages:
            contents[dst] |= contents[src]
            contents[src] = set()
            sheet.arrow((xs[src], y + 0.46), (xs[dst] + 0.05, y + 0.18), colour=colour_of(5))
        for rank, owners in enumerate(contents):
            low, high = (min(owners), max(owners)) if owners else (0, 0)
            text = "" if not owners else str(low) if low == high else f"{low}…{high}"
            cell = Cell(text, tuple(sorted(owners)))
            sheet.cell(xs[rank] - 0.34, y - 0.17, 0.68, 0.34, cell)
    return sheet


PICTURES: dict[str, Callable[[], Sheet]] = {
    function.__name__: function
    for function in (
        ranks, ring, send_recv, head_to_head, shift,
        broadcast, broadcast_rounds, scatter, gather, reduce, reduce_tree,
    )
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pictures to draw; all if none")
    parser.add_argument("--to", type=Path, default=ROOT / "imgs")
    request = parser.parse_args(arguments)
    unknown = set(request.names) - set(PICTURES)
    if unknown:
        print(f"no picture {sorted(unknown)[0]!r}; there are {', '.join(PICTURES)}")
        return 2
    request.to.mkdir(parents=True, exist_ok=True)
    for name in request.names or PICTURES:
        PICTURES[name]().save(request.to / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
