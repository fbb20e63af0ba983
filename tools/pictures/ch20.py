"""Pictures of chapter 20: tree algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.patches import Circle

from grader.course.costs import ring_all_reduce_seconds, tree_all_reduce_seconds
from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of, tint
from tools.pictures.common import EMPTY

_MOVES = "#D55E00"

#: The chapter's network: seconds, and seconds per byte.
_ALPHA, _BETA = 10e-6, 1 / 25e9


def recursive_doubling() -> Sheet:
    """Eight ranks exchange at the distances 1, 2 and 4."""
    size, pitch, width, height, drop = 8, 1.08, 0.86, 0.34, 1.0
    sheet = Sheet(0.95 + size * pitch, 4.25)
    xs = [0.95 + rank * pitch for rank in range(size)]
    held = [{rank} for rank in range(size)]
    for rank, x in enumerate(xs):
        sheet.text(x + width / 2, 3.98, f"rank {rank}", 10, bold=True)
    for t in range(4):
        y = 3.42 - t * drop
        if t:
            step = 1 << (t - 1)
            sheet.text(0.42, y + 0.78, f"step {t}", 10, bold=True)
            sheet.text(0.42, y + 0.58, f"distance {step}", 8, colour=FAINT)
            for rank in range(size):
                start = xs[rank] + width / 2, y + drop - 0.03
                end = xs[rank ^ step] + width / 2, y + height + 0.03
                sheet.arrow(start, end, colour=_MOVES, width=1.2)
            held = [held[rank] | held[rank ^ step] for rank in range(size)]
        for rank, x in enumerate(xs):
            owners = tuple(sorted(held[rank]))
            letters = ["ABCDEFGH"[owner] for owner in owners]
            text = "+".join(letters) if len(letters) < 5 else f"{letters[0]}+…+{letters[-1]}"
            sheet.cell(x, y, width, height, Cell(text, owners))
    return sheet


def halving_doubling() -> Sheet:
    """Four ranks and four elements: halves are exchanged, and then the same backwards."""
    size, width, height, gap, pitch = 4, 0.56, 0.34, 0.34, 0.98
    block = size * width
    sheet = Sheet(1.2 + size * (block + gap), 5.1)
    xs = [1.2 + rank * (block + gap) for rank in range(size)]
    held = [[{rank} for _ in range(size)] for rank in range(size)]
    mine = [list(range(size)) for _ in range(size)]
    for rank, x in enumerate(xs):
        sheet.text(x + block / 2, 4.85, f"rank {rank}", 11, bold=True)
    rows: list[tuple[int, list[list[int]]]] = [(0, [[] for _ in range(size)])]
    away: list[list[list[int]]] = []
    for step in (1, 2):
        given = []
        for rank in range(size):
            half = len(mine[rank]) // 2
            low, high = mine[rank][:half], mine[rank][half:]
            mine[rank], lost = (high, low) if rank & step else (low, high)
            given.append(lost)
        away.append(given)
        rows.append((step, [list(kept) for kept in mine]))
    for step, given in ((2, away[1]), (1, away[0])):
        rows.append((-step, given))
    for t, (step, came) in enumerate(rows):
        y = 4.3 - t * pitch
        if t:
            adding, distance = step > 0, abs(step)
            sheet.text(0.52, y + 0.78, f"step {t}", 10, bold=True)
            word = "add" if adding else "replace"
            sheet.text(0.52, y + 0.58, word, 9, colour=FAINT)
            sheet.text(0.52, y + 0.40, f"distance {distance}", 8, colour=FAINT)
            before = [[set(cell) for cell in row] for row in held]
            for rank in range(size):
                other = rank ^ distance
                for i in came[rank]:
                    part = before[other][i]
                    held[rank][i] = before[rank][i] | part if adding else set(part)
                middle = sum(came[rank]) / len(came[rank]) + 0.5
                start = xs[other] + middle * width, y + pitch - 0.03
                end = xs[rank] + middle * width, y + height + 0.05
                sheet.arrow(start, end, colour=_MOVES, width=1.3)
        for rank, x in enumerate(xs):
            for i in range(size):
                parts = held[rank][i]
                text = "abcd"[i] + ("" if len(parts) < 2 else f" ·{len(parts)}")
                whole = len(parts) == size
                # what a rank no longer cares for is dashed, as what stays is in other pictures
                idle = 0 < t < 4 and i not in mine_after(rank, t)
                cell = Cell(text, tuple(sorted(parts)), still=idle)
                sheet.cell(x + i * width, y, width, height, EMPTY if idle else cell)
                if whole and not idle:
                    sheet.axes.plot(
                        [x + i * width + 0.04, x + (i + 1) * width - 0.04],
                        [y + 0.03, y + 0.03],
                        color=INK,
                        lw=2.2,
                    )
    sheet.text(
        sheet.axes.get_xlim()[1] / 2,
        0.13,
        "a number says how many ranks are in a sum; underlined: complete; empty: another rank's",
        9,
        colour=FAINT,
    )
    return sheet


def mine_after(rank: int, t: int) -> Sequence[int]:
    """Return the elements that a rank of four cares for after ``t`` of the four steps."""
    half = (2, 3) if rank & 1 else (0, 1)
    quarter = half[1:] if rank & 2 else half[:1]
    return {1: half, 2: quarter, 3: half}[t]


def pipelined_chain() -> Sheet:
    """Four pieces move down a chain of five ranks, one round apart."""
    ranks, pieces, width, height = 5, 4, 0.78, 0.42
    rounds = ranks - 2 + pieces
    sheet = Sheet(1.35 + rounds * width + 0.2, 0.75 + ranks * (height + 0.2))
    left, top = 1.35, 0.3 + ranks * (height + 0.2)
    for t in range(rounds):
        sheet.text(left + (t + 0.5) * width, top + 0.2, f"round {t + 1}", 9, colour=FAINT)
    for rank in range(ranks):
        y = top - (rank + 1) * (height + 0.2) + 0.1
        name = "rank 0, source" if not rank else f"rank {rank}"
        sheet.text(left - 0.12, y + height / 2, name, 9, bold=True, align="right")
        line = [left, left + rounds * width]
        sheet.axes.plot(line, [y - 0.1] * 2, color="#dddddd", lw=0.8, zorder=0)
        for piece in range(pieces):
            t = rank - 1 + piece
            if rank:
                x = left + t * width
                sheet.cell(x + 0.04, y, width - 0.08, height, Cell(f"piece {piece}", (piece,)))
            if rank == 1:
                x = left + (t + 0.5) * width
                sheet.arrow((x, y + height + 0.3), (x, y + height + 0.02), colour=_MOVES)
            if 0 < rank < ranks - 1:  # on to the next rank, one round later
                start = left + (t + 0.8) * width, y - 0.01
                sheet.arrow(start, (left + (t + 1.2) * width, y - 0.2), colour=_MOVES)
    return sheet


def _tree(
    sheet: Sheet,
    places: dict[int, tuple[float, float]],
    parents: dict[int, int],
    labels: dict[int, str],
    leaves: bool = True,
) -> None:
    """Draw a tree: ranks with children bold, leaves dashed."""
    inner = set(parents.values())
    for child, parent in parents.items():
        (x, y), (u, v) = places[parent], places[child]
        long = math.hypot(u - x, v - y)
        cut = 0.25 / long
        start = x + (u - x) * cut, y + (v - y) * cut
        end = u - (u - x) * cut, v - (v - y) * cut
        sheet.arrow(start, end, colour=_MOVES, width=1.5)
    for rank, (x, y) in places.items():
        bold = rank in inner
        fill = tint(colour_of(0), 0.5 if bold else 0.08)
        line = "-" if bold or not leaves else "--"
        sheet.axes.add_patch(
            Circle((x, y), 0.22, fc=fill, ec=INK, lw=2.2 if bold else 1.2, ls=line, zorder=3)
        )
        sheet.axes.text(
            x,
            y,
            labels[rank],
            fontsize=10,
            fontweight="bold" if bold else "normal",
            ha="center",
            va="center",
            color=INK,
            family="DejaVu Sans",
            zorder=4,
        )


def idle_leaves() -> Sheet:
    """A binary tree of seven ranks, where four send nothing."""
    sheet = Sheet(6.6, 2.55)
    places = {0: (3.3, 2.2), 1: (1.7, 1.35), 2: (4.9, 1.35)}
    places |= {3 + i: (0.9 + 1.6 * i, 0.5) for i in range(4)}
    parents = {r: (r - 1) // 2 for r in range(1, 7)}
    # the picture is of positions, and not of numbers of ranks
    _tree(sheet, places, parents, dict.fromkeys(places, ""))
    sheet.text(0.95, 1.95, "every piece twice", 9, colour=FAINT)
    sheet.text(3.3, 0.1, "send nothing", 9, colour=FAINT)
    return sheet


def two_trees() -> Sheet:
    """NCCL's trees of eight ranks, one the mirror image of the other."""
    sheet = Sheet(9.6, 3.1)
    depth = {0: 0, 4: 1, 2: 2, 6: 2, 1: 3, 3: 3, 5: 3, 7: 3}
    parent = {4: 0, 2: 4, 6: 4, 1: 2, 3: 2, 5: 6, 7: 6}
    labels = {rank: str(rank) for rank in range(8)}
    for x0, title, mirror in ((0.35, "first tree", False), (5.05, "second tree", True)):
        places = {}
        for rank, level in depth.items():
            own = 7 - rank if mirror else rank
            places[own] = x0 + 0.25 + own * 0.57, 2.45 - level * 0.7
        parents = {(7 - c if mirror else c): (7 - p if mirror else p) for c, p in parent.items()}
        sheet.text(x0 + 0.25 + 3.5 * 0.57, 2.9, title, 11, bold=True)
        _tree(sheet, places, parents, labels)
    return sheet


#: Powers of ten on the axes of the curves: bytes, and seconds.
_SIZES, _SECONDS = (2, 10), (-5, 1)

_TIMES = {
    -5: "10 µs",
    -4: "100 µs",
    -3: "1 ms",
    -2: "10 ms",
    -1: "100 ms",
    0: "1 s",
    1: "10 s",
}


def _doubling(n: int, nbytes: float, alpha: float, beta: float) -> float:
    return math.log2(n) * (alpha + nbytes * beta)


def _halving(n: int, nbytes: float, alpha: float, beta: float) -> float:
    return 2 * math.log2(n) * alpha + 2 * (n - 1) / n * nbytes * beta


def all_reduce_curves() -> Sheet:
    """Four all-reduces of 512 ranks over the size of the tensor."""
    n, width, height, left, bottom = 512, 5.6, 3.2, 0.85, 0.75
    sheet = Sheet(left + width + 2.15, bottom + height + 0.3)

    def across(nbytes: float) -> float:
        return left + (math.log10(nbytes) - _SIZES[0]) / (_SIZES[1] - _SIZES[0]) * width

    def up(seconds: float) -> float:
        return bottom + (math.log10(seconds) - _SECONDS[0]) / (_SECONDS[1] - _SECONDS[0]) * height

    for power, name in _TIMES.items():
        y = up(10.0**power)
        sheet.axes.plot([left, left + width], [y, y], color="#dddddd", lw=0.8, zorder=0)
        sheet.text(left - 0.08, y, name, 9, colour=FAINT, align="right")
    for power, name in ((3, "1 kB"), (5, "100 kB"), (7, "10 MB"), (9, "1 GB")):
        x = across(10.0**power)
        sheet.axes.plot([x, x], [bottom, bottom + height], color="#dddddd", lw=0.8, zorder=0)
        sheet.text(x, bottom - 0.15, name, 9, colour=FAINT)
    exponents = [_SIZES[0] + (_SIZES[1] - _SIZES[0]) * i / 200 for i in range(201)]
    for name, cost, colour, dash, lift in (
        ("ring", ring_all_reduce_seconds, colour_of(0), "-", -0.1),
        ("tree", tree_all_reduce_seconds, colour_of(7), "--", 0.12),
        ("recursive doubling", _doubling, colour_of(5), "-.", -0.04),
        ("halving and doubling", _halving, colour_of(2), ":", -0.28),
    ):
        points = [(across(10**e), up(cost(n, 10**e, _ALPHA, _BETA))) for e in exponents]
        inside = [(x, y) for x, y in points if y <= bottom + height]
        sheet.axes.plot(*zip(*inside, strict=True), color=colour, ls=dash, lw=2.4)
        x, y = inside[-1]
        sheet.text(x + 0.08, y + lift, name, 9, bold=True, colour=colour, align="left")
    levels = math.log2(n)
    size = levels * _ALPHA / (_BETA * (levels - 2 * (n - 1) / n))
    x, y = across(size), up(_doubling(n, size, _ALPHA, _BETA))
    sheet.axes.plot([x, x], [bottom, y], color=INK, lw=1.2, ls=":")
    sheet.axes.plot([x], [y], "o", color=INK, ms=6, zorder=6)
    sheet.text(x + 0.1, bottom + 0.16, f"{size / 1e3:.0f} kB", 9, bold=True, align="left")
    for line in ([left, left + width], [bottom] * 2), ([left] * 2, [bottom, bottom + height]):
        sheet.axes.plot(*line, color=INK, lw=1)
    sheet.text(left + width / 2, 0.22, "size of the tensor", 10)
    return sheet


PICTURES = (
    recursive_doubling,
    halving_doubling,
    all_reduce_curves,
    pipelined_chain,
    idle_leaves,
    two_trees,
)
