"""Pictures of chapter 01: point to point."""

from __future__ import annotations

from grader.report.drawing import FAINT, INK, Cell, Sheet, before_after, colour_of
from tools.pictures.common import N, own


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
    sheet = Sheet(8, 3.2)
    panels = (
        ("both send first: a cycle", ("send(x, 1)", "recv(y, 1)"), ("send(x, 0)", "recv(y, 0)")),
        ("one receives first", ("send(x, 1)", "recv(y, 1)"), ("recv(y, 0)", "send(x, 0)")),
        (
            "both isend first",
            ("isend(x, 1)", "recv(y, 1)", "  wait()  "),
            ("isend(x, 0)", "recv(y, 0)", "  wait()  "),
        ),
    )
    for i, (title, left, right) in enumerate(panels):
        x0 = 0.25 + i * 2.6
        good = i > 0
        sheet.text(x0 + 1.15, 2.95, ("✓ " if good else "✗ ") + title, 10, bold=True)
        for column, (rank, calls) in enumerate(((0, left), (1, right))):
            x = x0 + column * 1.3
            sheet.rank(x, 0.5, 1.0, 2.05, rank)
            for row, call in enumerate(calls):
                y = 2.02 - row * 0.62
                waits = not good and row == 0
                cell = Cell(call, (5,) if waits else (2,) if good else ())
                sheet.cell(x + 0.04, y, 0.92, 0.42, cell)
        if i == 0:
            red = colour_of(5)
            sheet.arrow((x0 + 1.0, 2.34), (x0 + 1.3, 2.34), colour=red, bend=-0.3)
            sheet.arrow((x0 + 1.3, 2.12), (x0 + 1.0, 2.12), colour=red, bend=-0.3)
            sheet.text(x0 + 1.15, 2.68, "waits for", 9, colour=red)
        elif i == 1:
            sheet.arrow((x0 + 1.0, 2.23), (x0 + 1.3, 2.23))
            sheet.arrow((x0 + 1.3, 1.61), (x0 + 1.0, 1.61))
            sheet.text(x0 + 1.15, 2.68, "message", 9)
        else:
            sheet.arrow((x0 + 1.0, 2.15), (x0 + 1.3, 1.65))
            sheet.arrow((x0 + 1.3, 2.15), (x0 + 1.0, 1.65))
            sheet.text(x0 + 1.15, 2.68, "messages", 9)
    return sheet


def shift() -> Sheet:
    """Everybody's x moves one rank on."""
    before = [[own(rank)] for rank in range(N)]
    after = [[own((rank - 1) % N)] for rank in range(N)]
    return before_after("shift by 1", before, after)


PICTURES = (
    send_recv,
    head_to_head,
    shift,
)
