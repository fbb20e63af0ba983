"""Pictures of chapter 09: barrier."""

from __future__ import annotations

from collections.abc import Sequence

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of


def barrier() -> Sheet:
    """Ranks arrive at different times and leave together."""
    sheet = Sheet(8, 3.1)
    scale, x0 = 2.3, 1.1
    door = x0 + 2 * scale
    for rank in range(3):
        y = 2.35 - rank * 0.72
        sheet.text(0.55, y, f"rank {rank}", 11, bold=True)
        arrival = x0 + rank * scale
        if rank:
            sheet.bar(x0, y, arrival - x0, f"sleeps {rank} s", FAINT)
        if arrival < door:
            sheet.bar(arrival, y, door - arrival, f"waits {2 - rank} s", colour_of(1))
        sheet.bar(door, y, 1.5, "goes on", colour_of(2))
    sheet.axes.plot([door, door], [0.55, 2.72], color=INK, lw=2, zorder=6)
    sheet.text(door, 2.9, "the last has arrived: all leave", 10, bold=True)
    sheet.arrow((x0, 0.4), (7.6, 0.4), colour=FAINT, width=1)
    for second in range(3):
        sheet.text(x0 + second * scale, 0.2, f"{second} s", 9, colour=FAINT)
    sheet.text(7.35, 0.2, "time", 9, colour=FAINT)
    return sheet


def dissemination() -> Sheet:
    """Five ranks, three rounds: whom each has heard of."""
    n, steps = 5, (1, 2, 4)
    sheet = Sheet(8, 4.5)
    xs = [1.75 + rank * 1.35 for rank in range(n)]
    heard: list[set[int]] = [{rank} for rank in range(n)]
    for rank, x in enumerate(xs):
        sheet.text(x, 4.28, f"rank {rank}", 10, bold=True)
    for i in range(len(steps) + 1):
        y = 3.85 - i * 1.15
        if i:
            step = steps[i - 1]
            sheet.text(0.55, y + 0.1, f"round {i}", 10)
            sheet.text(0.55, y - 0.12, f"step {step}", 9, colour=FAINT)
            heard = [heard[r] | heard[(r - step) % n] for r in range(n)]
            for src in range(n):
                dst = (src + step) % n
                start, end = (xs[src], y + 0.95), (xs[dst], y + 0.2)
                sheet.arrow(start, end, colour=colour_of(src), width=1.5)
        else:
            sheet.text(0.55, y, "start", 10)
        for rank, x in enumerate(xs):
            # in the order in which a rank hears of them: itself, then to its left
            to_the_left = [(rank - back) % n for back in range(n)]
            owners = [owner for owner in to_the_left if owner in heard[rank]]
            for place, owner in enumerate(owners):
                cell = Cell(str(owner), (owner,))
                sheet.cell(x - 0.5 + place * 0.2, y - 0.17, 0.2, 0.34, cell)
            for place in range(len(owners), n):
                sheet.cell(x - 0.5 + place * 0.2, y - 0.17, 0.2, 0.34, Cell())
    return sheet


#: Seconds by rank, for each step of the picture of stragglers.
#: Rank r is slow in step r, as in the chapter's code.
_STEPS = ((2.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 2.0))


def _lanes(sheet: Sheet, top: float, barriers: bool, scale: float, x0: float) -> float:
    """Draw the ranks' steps; where the last one ends."""
    clocks = [0.0] * len(_STEPS[0])
    for number, step in enumerate(_STEPS):
        for rank, seconds in enumerate(step):
            y = top - rank * 0.42
            colour = colour_of(5) if seconds > 1 else colour_of(0)
            start = x0 + clocks[rank] * scale
            sheet.bar(start, y, seconds * scale, f"step {number + 1}", colour)
            clocks[rank] += seconds
        if barriers:
            door = max(clocks)
            for rank, clock in enumerate(clocks):
                if clock < door:
                    y, start = top - rank * 0.42, x0 + clock * scale
                    sheet.bar(start, y, (door - clock) * scale, "waits", colour_of(1))
            x = x0 + door * scale
            sheet.axes.plot([x, x], [top - 1.06, top + 0.22], color=INK, lw=2, zorder=6)
            clocks = [door] * len(clocks)
    return x0 + max(clocks) * scale


def _end(sheet: Sheet, x: float, y: float, text: str) -> None:
    sheet.arrow((x, y - 0.28), (x, y), colour=INK)
    sheet.text(x, y - 0.4, text, 9, bold=True)


def straggler() -> Sheet:
    """The same work with a barrier after every step and without any."""
    sheet = Sheet(8, 4.3)
    scale, x0 = 1.05, 1.1
    panels: Sequence[tuple[float, bool, str]] = (
        (3.65, True, "a barrier after every step: each step takes as long as its slowest rank"),
        (1.55, False, "no barriers: each rank is slow once, and it averages out"),
    )
    for top, barriers, title in panels:
        sheet.text(x0, top + 0.42, title, 10, bold=True, align="left")
        for rank in range(3):
            sheet.text(0.55, top - rank * 0.42, f"rank {rank}", 10)
        end = _lanes(sheet, top, barriers, scale, x0)
        _end(sheet, end, top - 1.1, f"done after {round((end - x0) / scale)}")
    return sheet


PICTURES = (
    barrier,
    dissemination,
    straggler,
)
