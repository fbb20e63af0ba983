"""Pictures of chapter 21: how nodes are wired, what crosses, two levels, a switch that adds."""

from __future__ import annotations

from math import cos, pi, sin

from matplotlib.patches import FancyBboxPatch, Rectangle

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of, tint

#: Colour of switches and of the frames of nodes.
_SWITCH = "#9e9e9e"

#: Widths of lines: a link inside a node, and one between nodes.
_FAST, _SLOW = 5.0, 1.3


def _box(
    sheet: Sheet, x: float, y: float, width: float, text: str, colour: str, height: float = 0.34
) -> None:
    """Draw a named box around a point."""
    sheet.axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.02,rounding_size=0.06",
            fc=tint(colour),
            ec=INK,
            lw=1.1,
            zorder=3,
        )
    )
    sheet.axes.text(x, y, text, fontsize=9, ha="center", va="center", color=INK, zorder=4,
                    family="DejaVu Sans")  # fmt: skip


def _node(sheet: Sheet, x: float, y: float, width: float, height: float, name: str) -> None:
    """Draw the frame of a node with its lower left corner at (x, y)."""
    sheet.axes.add_patch(Rectangle((x, y), width, height, fc="#f4f4f4", ec=FAINT, lw=1, zorder=0))
    sheet.text(x + width / 2, y - 0.17, name, 10, colour=FAINT)


def _line(
    sheet: Sheet, start: tuple[float, float], end: tuple[float, float], colour: str, width: float
) -> None:
    sheet.axes.plot([start[0], end[0]], [start[1], end[1]], color=colour, lw=width, zorder=1)


def _between(a: tuple[float, float], b: tuple[float, float], part: float) -> tuple[float, float]:
    """Return the point that is this part of the way from one to another."""
    return (a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]))


def rails() -> Sheet:
    """Three nodes of four ranks: fast links to a switch inside, and a rail for each place."""
    sheet = Sheet(9.6, 4.6)
    ranks, width = 4, 2.7
    spines = [3.6, 6.0]
    leaves = [1.8 + 2.0 * place for place in range(ranks)]
    for x in spines:
        _box(sheet, x, 4.25, 0.9, "spine", _SWITCH)
    for place, x in enumerate(leaves):
        for spine in spines:
            _line(sheet, (spine, 4.25), (x, 3.35), _SWITCH, _SLOW)
        _box(sheet, x, 3.35, 0.9, f"leaf {place}", colour_of(place))
    for node in range(3):
        left = 0.35 + node * 3.1
        _node(sheet, left, 0.45, width, 1.75, f"node {node}")
        middle = left + width / 2
        for place in range(ranks):
            x = left + 0.36 + place * 0.66
            _line(sheet, (x, 1.85), (leaves[place], 3.35), colour_of(place), _SLOW)
            _line(sheet, (x, 1.85), (middle, 0.85), INK, _FAST)
            _box(sheet, x, 1.85, 0.42, str(node * ranks + place), colour_of(place))
        _box(sheet, middle, 0.85, 1.5, "switch of the node", _SWITCH)
    return sheet


def ring_across_nodes() -> Sheet:
    """One ring over two nodes, laid out node by node and dealt like cards."""
    sheet = Sheet(9.0, 3.7)
    n, radius = 8, 1.05
    layouts = (
        ("node by node: 2 of 8 messages cross", lambda rank: rank // 4),
        ("dealt in turns: all of them cross", lambda rank: rank % 2),
    )
    for column, (title, node_of) in enumerate(layouts):
        x0, y0 = 2.25 + column * 4.5, 1.75
        sheet.text(x0, 3.45, title, 11, bold=True)
        angles = [pi / 2 + pi / n - 2 * pi * rank / n for rank in range(n)]
        places = [(x0 + 1.3 * radius * cos(a), y0 + radius * sin(a)) for a in angles]
        for rank, place in enumerate(places):
            after = places[(rank + 1) % n]
            inside = node_of(rank) == node_of((rank + 1) % n)
            start, end = _between(place, after, 0.27), _between(place, after, 0.73)
            sheet.arrow(start, end, INK if inside else "#D55E00", width=3 if inside else 1.6,
                        dashed=not inside)  # fmt: skip
        for rank, (x, y) in enumerate(places):
            _box(sheet, x, y, 0.34, str(rank), colour_of(node_of(rank)))
    sheet.text(4.5, 0.2, "one colour a node; thick: inside a node; dashed: between nodes", 10,
               colour=FAINT)  # fmt: skip
    return sheet


def two_levels() -> Sheet:
    """Two nodes of two ranks, before and after each of the three steps."""
    sheet = Sheet(10.2, 3.35)
    wide, high = 0.9, 0.36
    empty = Cell()
    states: list[tuple[str, str, list[list[Cell]]]] = [
        (
            "at first",
            "",
            [[Cell(f"{'ABCD'[r]}{part}", (r,)) for part in (0, 1)] for r in range(4)],
        ),
        (
            "1",
            "inside",
            [
                [Cell("A0+B0", (0, 1)), empty],
                [empty, Cell("A1+B1", (0, 1))],
                [Cell("C0+D0", (2, 3)), empty],
                [empty, Cell("C1+D1", (2, 3))],
            ],
        ),
        (
            "2",
            "across",
            [
                [Cell("sum 0", (0, 1, 2, 3)), empty],
                [empty, Cell("sum 1", (0, 1, 2, 3))],
                [Cell("sum 0", (0, 1, 2, 3)), empty],
                [empty, Cell("sum 1", (0, 1, 2, 3))],
            ],
        ),
        (
            "3",
            "inside",
            [[Cell("sum 0", (0, 1, 2, 3)), Cell("sum 1", (0, 1, 2, 3))] for _ in range(4)],
        ),
    ]
    for column, (name, where, ranks) in enumerate(states):
        x = 0.95 + column * 2.35
        sheet.text(x + wide, 3.23, f"after step {name}" if where else name, 11, bold=True)
        if where:
            sheet.text(x + wide, 2.99, where + " nodes" * (where == "across")
                       + " the node" * (where == "inside"), 10, colour=FAINT)  # fmt: skip
        for rank, cells in enumerate(ranks):
            y = 2.37 - rank * 0.55 - (rank // 2) * 0.3
            for part, cell in enumerate(cells):
                sheet.cell(x + part * wide, y, wide, high, cell)
            if column == 0:
                sheet.text(x - 0.45, y + high / 2, f"rank {rank}", 10)
    for node in range(2):
        top = 2.37 + high + 0.09 - node * 1.4
        sheet.axes.add_patch(
            Rectangle((0.1, top - 1.09), 9.98, 1.09, fill=False, ec=FAINT, lw=1, ls=":")
        )
        sheet.text(0.16, top - 1.22, f"node {node}", 9, colour=FAINT, align="left")
    return sheet


def switch_that_adds() -> Sheet:
    """Beside a ring, where a tensor travels almost twice, a switch that adds up what comes."""
    sheet = Sheet(8.8, 3.5)
    for x0, title, below in (
        (2.2, "ranks add: ring", "a rank sends 2 · ¾ S and receives 2 · ¾ S"),
        (6.6, "the switch adds", "a rank sends S and receives S"),
    ):
        sheet.text(x0, 3.3, title, 12, bold=True)
        sheet.text(x0, 0.2, below, 10)
        corners = [
            (x0 + 1.15 * a, 1.75 + 0.95 * b) for a, b in ((-1, 1), (1, 1), (1, -1), (-1, -1))
        ]
        for rank, (x, y) in enumerate(corners):
            if x0 < 4:
                to = corners[(rank + 1) % 4]
                start, end = _between((x, y), to, 0.22), _between((x, y), to, 0.78)
                sheet.arrow(start, end)
                out = 0.2 if x == to[0] else 0.13  # beside the arrow, away from the middle
                beside = ((x + to[0]) / 2, (y + to[1]) / 2)
                away = [0 if abs(b - m) < 0.1 else (1 if b > m else -1)
                        for b, m in zip(beside, (x0, 1.75), strict=True)]  # fmt: skip
                sheet.text(beside[0] + 2 * out * away[0], beside[1] + out * away[1], "2 · ¾ S", 9)
            else:
                dx, dy = (x0 - x) / 1.15, (1.75 - y) / 0.95
                side = 0.11
                sheet.arrow((x + 0.3 * dx + side * dy, y + 0.2 * dy - side * dx),
                            (x0 - 0.42 * dx + side * dy, 1.75 - 0.3 * dy - side * dx))  # fmt: skip
                sheet.arrow((x0 - 0.42 * dx - side * dy, 1.75 - 0.3 * dy + side * dx),
                            (x + 0.3 * dx - side * dy, y + 0.2 * dy + side * dx))  # fmt: skip
            _box(sheet, x, y, 0.5, f"{rank}", colour_of(rank))
        if x0 > 4:
            _box(sheet, x0, 1.75, 0.72, "+", _SWITCH, 0.5)
            sheet.text(x0, 2.62, "S each way", 9, colour=FAINT)
    return sheet


PICTURES = (rails, ring_across_nodes, two_levels, switch_that_adds)
