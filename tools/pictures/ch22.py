"""Pictures of chapter 22: failures."""

from __future__ import annotations

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of

#: Palette entries: vermilion for what is wrong, green for what goes on, orange for waiting.
_WRONG, _FREE, _WAIT = 5, 2, 1


def who_notices() -> Sheet:
    """A ring of four whose rank 2 is dead: its neighbours hear of it, the rank opposite waits."""
    sheet = Sheet(8, 3.2)
    places = {0: (2.0, 2.6), 1: (3.6, 1.6), 2: (2.0, 0.6), 3: (0.4, 1.6)}
    for one, two in ((0, 1), (1, 2), (2, 3), (3, 0)):
        (x, y), (u, v) = places[one], places[two]
        broken = 2 in (one, two)
        colour = colour_of(_WRONG) if broken else FAINT
        line = "--" if broken else "-"
        sheet.axes.plot([x, u], [y, v], color=colour, lw=1.8, ls=line, zorder=0)
    for rank, (x, y) in places.items():
        owner = {0: _WAIT, 2: _WRONG}.get(rank, _FREE)
        left, right, low, high = x - 0.34, x + 0.34, y - 0.25, y + 0.25
        corners = [left, right, right, left], [low, low, high, high]
        sheet.axes.fill(*corners, color="white", zorder=1)  # hides the lines behind it
        sheet.cell(x - 0.34, y - 0.25, 0.68, 0.5, Cell(str(rank), (owner,)))
    sheet.text(2.0, 0.2, "✗ killed", 10, bold=True)
    sheet.text(2.0, 3.05, "no messages to or from rank 2", 9, colour=FAINT)
    rows = (
        (2.45, "ranks 1 and 3", "their connection breaks: an exception at once", _FREE),
        (1.6, "rank 0", "hears nothing: waits until its time limit", _WAIT),
        (0.75, "rank 2", "says nothing, now or ever", _WRONG),
    )
    for y, who, what, owner in rows:
        sheet.cell(4.55, y - 0.1, 0.22, 0.22, Cell("", (owner,)))
        sheet.text(4.9, y + 0.12, who, 11, bold=True, align="left")
        sheet.text(4.9, y - 0.14, what, 9, align="left")
    return sheet


def column_of_calls() -> Sheet:
    """Records in rows, read column by column up to the first that differs."""
    sheet = Sheet(9.4, 2.75)
    reduces, tells, gathers = "all_reduce 6", "broadcast 3", "all_gather 2"
    calls = (reduces, tells, gathers, reduces)
    rows: list[list[str]] = [[*calls, tells, gathers] for _ in range(4)]
    rows[0] = [*calls, tells, ""]  # waits there for rank 2
    rows[2] = [*calls, gathers, ""]
    wide, high, x0, top = 1.28, 0.38, 1.2, 2.0
    for position in range(6):
        x = x0 + position * (wide + 0.06)
        sheet.text(x + wide / 2, top + 0.5, str(position), 10, colour=FAINT)
        for rank, row in enumerate(rows):
            text = row[position]
            wrong = text != rows[1][position]
            if text:
                owner = (_WRONG,) if wrong else (7,)
                sheet.cell(x, top - rank * (high + 0.06), wide, high, Cell(text, owner))
    for rank in range(4):
        sheet.text(0.6, top - rank * (high + 0.06) + high / 2, f"rank {rank}", 10, bold=rank == 2)
    x = x0 + 4 * (wide + 0.06)
    sheet.axes.plot(
        [x - 0.03, x + wide + 0.03, x + wide + 0.03, x - 0.03, x - 0.03],
        [0.6, 0.6, 2.44, 2.44, 0.6],
        color=INK,
        lw=2.2,
    )
    sheet.text(
        x0, 0.3, "the first column that differs: position 4, rank 2", 10, bold=True, align="left"
    )
    sheet.text(x0 - 0.05, top + 0.5, "position", 9, colour=FAINT, align="right")
    return sheet


def lost_work() -> Sheet:
    """Steps and checkpoints of two attempts, and the begun step that is lost between them."""
    sheet = Sheet(8, 2.5)
    x0, wide, above, below = 1.15, 0.78, 1.7, 0.6
    sheet.text(0.55, above, "attempt 0", 10, bold=True)
    for step in range(4):
        sheet.bar(x0 + step * wide, above, wide, f"step {step}", colour_of(0))
    begun, death = x0 + 4 * wide, x0 + 4 * wide + 0.6
    sheet.bar(begun, above, 0.6, "step 4", colour_of(_WRONG), hatch="//")
    sheet.text(death + 0.18, above, "✗", 15, bold=True, colour=colour_of(_WRONG))
    sheet.text(death + 0.32, above, "a rank dies", 9, bold=True, align="left")
    sheet.text(death - 0.3, above - 0.32, "lost", 9, colour=FAINT)

    start = death + 0.4
    sheet.text(0.55, below, "attempt 1", 10, bold=True)
    sheet.bar(start, below, 0.7, "restart", FAINT)
    for step in (4, 5):
        sheet.bar(start + 0.7 + (step - 4) * wide, below, wide, f"step {step}", colour_of(0))
    for x, y in ((x0 + 2 * wide, above), (begun, above), (start + 0.7 + 2 * wide, below)):
        sheet.arrow((x, y + 0.52), (x, y + 0.19), colour=INK)
        sheet.text(x, y + 0.63, "checkpoint", 8, colour=FAINT)
    sheet.arrow((begun, above - 0.2), (start - 0.04, below), colour=FAINT, bend=0.2, dashed=True)
    sheet.text(begun - 0.2, 0.95, "loads the checkpoint of step 3", 9, colour=FAINT, align="right")
    return sheet


def resharded() -> Sheet:
    """Ten rows on four ranks in a checkpoint, and on three ranks when it is read."""
    sheet = Sheet(8, 2.9)
    for title, y, parts in (
        ("written by 4 ranks", 2.05, (3, 3, 3, 1)),
        ("read by 3 ranks", 0.35, (4, 4, 2)),
    ):
        sheet.text(0.9, y + 0.2, title, 10, bold=True)
        row = 0
        for rank, rows in enumerate(parts):
            for _ in range(rows):
                sheet.cell(2.0 + row * 0.56, y, 0.52, 0.4, Cell(str(row), (rank,)))
                row += 1
            middle = 2.0 + (row - rows / 2) * 0.56
            sheet.text(middle, y + (0.56 if y > 1 else -0.16), f"rank {rank}", 9, colour=FAINT)
    for row in range(10):
        x = 2.26 + row * 0.56
        sheet.arrow((x, 1.98), (x, 0.82), colour=FAINT, width=1)
    sheet.text(0.9, 1.4, "files, and a list of\nwhich row is where", 9, colour=FAINT)
    return sheet


PICTURES = (
    who_notices,
    column_of_calls,
    lost_work,
    resharded,
)
