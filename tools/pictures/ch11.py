"""Pictures of chapter 11: the ring all-reduce."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of, tint

_MOVES = "#D55E00"


def ring_three() -> Sheet:
    """Three ranks and three chunks, step by step."""
    size, width, height, gap = 3, 0.82, 0.36, 0.42
    block = size * width
    top, pitch = 4.2, 0.98
    sheet = Sheet(10.45, 5.0)
    left = 1.15
    xs = [left + rank * (block + gap) for rank in range(size)]
    held = [[[f"{letter}{i}"] for i in range(size)] for letter in "ABC"]
    for rank, x in enumerate(xs):
        sheet.text(x + block / 2, top + 0.6, f"rank {rank}", 11, bold=True)
    for t in range(2 * (size - 1) + 1):
        y = top - t * pitch
        came = [-1] * size
        if t:
            s, second = ((t - 1) % (size - 1)) + 1, t >= size
            moving = [(rank - s + second) % size for rank in range(size)]
            parts = [held[rank][i] for rank, i in enumerate(moving)]
            for rank, i in enumerate(moving):
                right = (rank + 1) % size
                held[right][i] = parts[rank] if second else held[right][i] + parts[rank]
                came[right] = i
                start = xs[rank] + (i + 0.5) * width, y + pitch - 0.02
                end = xs[right] + (i + 0.5) * width, y + height + 0.04
                if right:
                    sheet.arrow(start, end, colour=_MOVES, width=1.3)
                else:  # off the sheet on the right, and in again on the left
                    slope = (start[1] - end[1]) / (block + gap)
                    edge = xs[-1] + block + 0.32
                    drop = start[1] - slope * (edge - start[0])
                    sheet.axes.plot([start[0], edge], [start[1], drop], color=_MOVES, lw=1.3)
                    back = xs[0] - 0.32
                    sheet.text(edge + 0.07, drop - 0.02, "to rank 0", 8, colour=FAINT, align="left")
                    rise = end[1] + slope * (end[0] - back)
                    sheet.arrow((back, rise), end, colour=_MOVES, width=1.3)
            sheet.text(0.42, y + pitch / 2 + 0.26, f"step {t}", 10, bold=True)
            sheet.text(0.42, y + pitch / 2 + 0.06, "replace" if second else "add", 9, colour=FAINT)
        for rank, x in enumerate(xs):
            for i, parts_here in enumerate(held[rank]):
                owners = tuple("ABC".index(part[0]) for part in parts_here)
                cell = Cell("+".join(parts_here), owners)
                sheet.cell(x + i * width, y, width, height, cell)
            if came[rank] >= 0:
                _frame(sheet, x + came[rank] * width, y, width, height)
    return sheet


def _frame(sheet: Sheet, x: float, y: float, width: float, height: float) -> None:
    sheet.axes.add_patch(Rectangle((x, y), width, height, fill=False, ec=_MOVES, lw=2.6, zorder=5))


def ring_five() -> Sheet:
    """Five ranks and five chunks: nine small grids."""
    size, side, gap = 5, 0.27, 0.42
    block = size * side
    sheet = Sheet(9.2, 4.45)
    held = [[{rank} for _ in range(size)] for rank in range(size)]
    names = ["start", *(f"step {t}: add" for t in range(1, 5))]
    names += [f"step {t}: replace" for t in range(5, 9)]
    for t, name in enumerate(names):
        row, column = divmod(t, 5)
        x0, y0 = 0.62 + column * (block + gap), 2.42 - row * 2.15
        came = [-1] * size
        if t:
            s, second = ((t - 1) % (size - 1)) + 1, t >= size
            moving = [(rank - s + 1 + second) % size for rank in range(size)]
            parts = [set(held[rank][i]) for rank, i in enumerate(moving)]
            for rank, i in enumerate(moving):
                right = (rank + 1) % size
                held[right][i] = parts[rank] if second else held[right][i] | parts[rank]
                came[right] = i
        sheet.text(x0 + block / 2, y0 + block + 0.4, name, 10, bold=True)
        for i, letter in enumerate("abcde"):
            sheet.text(x0 + (i + 0.5) * side, y0 + block + 0.13, letter, 9, colour=FAINT)
        for rank in range(size):
            y = y0 + (size - 1 - rank) * side
            if column == 0:
                sheet.text(x0 - 0.3, y + side / 2, f"rank {rank}", 8, colour=FAINT)
            for i in range(size):
                count = len(held[rank][i])
                fill = tint(colour_of(2), 0.9) if count == size else tint(colour_of(0), count / 10)
                box = (x0 + i * side, y)
                sheet.axes.add_patch(Rectangle(box, side, side, fc=fill, ec="#888888", lw=0.8))
                done = count == size
                sheet.text(
                    box[0] + side / 2,
                    y + side / 2,
                    str(count),
                    9,
                    bold=done,
                    colour="white" if done else INK,
                )
            if came[rank] >= 0:
                _frame(sheet, x0 + came[rank] * side, y, side, side)
    x, y = 0.62 + 4 * (block + gap) + 0.02, 0.75
    _frame(sheet, x, y + 0.55, side, side)
    sheet.text(x + 0.38, y + 0.68, "has just arrived", 9, align="left")
    fill = tint(colour_of(2), 0.9)
    sheet.axes.add_patch(Rectangle((x, y + 0.1), side, side, fc=fill, ec="#888888", lw=0.8))
    sheet.text(x + side / 2, y + 0.1 + side / 2, "5", 9, bold=True, colour="white")
    sheet.text(x + 0.38, y + 0.23, "complete", 9, align="left")
    return sheet


def ring_cost() -> Sheet:
    """What each of eight ranks sends: with a root and on the ring."""
    sheet, size, unit = Sheet(8, 2.9), 8, 0.25
    for x0, title, sent in (
        (0.85, "with a root", [size - 1.0] + [1.0] * (size - 1)),
        (4.75, "ring", [2 * (size - 1) / size] * size),
    ):
        sheet.text(x0 + 1.4, 2.68, title, 11, bold=True)
        for rank, amount in enumerate(sent):
            x = x0 + rank * 0.36
            colour = colour_of(5) if amount == size - 1 else colour_of(0)
            fill = tint(colour, 0.6)
            sheet.axes.add_patch(
                Rectangle((x, 0.5), 0.28, amount * unit, fc=fill, ec=colour, lw=1.2)
            )
            sheet.text(x + 0.14, 0.5 + amount * unit + 0.12, f"{amount:g}", 8)
            sheet.text(x + 0.14, 0.35, str(rank), 9)
        sheet.axes.plot([x0 - 0.06, x0 + 2.86], [0.5, 0.5], color=INK, lw=1)
        sheet.text(x0 + 1.4, 0.13, "rank", 9, colour=FAINT)
    sheet.axes.text(
        0.42,
        1.4,
        "sent, in whole tensors",
        fontsize=9,
        color=FAINT,
        rotation=90,
        ha="center",
        va="center",
        family="DejaVu Sans",
    )
    return sheet


PICTURES = (
    ring_three,
    ring_five,
    ring_cost,
)
