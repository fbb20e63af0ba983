"""Pictures of chapter 23: ZeRO."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from grader.report.drawing import FAINT, Sheet, colour_of, tint

#: Ranks in both pictures.
_RANKS = 4

#: What is kept, with the stage from which on it is cut.
_KEPT = (("weights", 3), ("gradients", 2), ("optimizer", 1))

_STAGES = ("without ZeRO", "ZeRO-1", "ZeRO-2", "ZeRO-3")


def _cell(
    sheet: Sheet, x: float, y: float, size: tuple[float, float], colour: int | None, text: str = ""
) -> None:
    """Draw a cell in the colour of a rank, or an empty one with a dashed frame."""
    width, height = size
    if colour is None:
        sheet.axes.add_patch(
            Rectangle((x, y), width, height, fc="none", ec="#bbbbbb", lw=0.8, ls=(0, (2, 2)))
        )
        return
    edge = colour_of(colour)
    sheet.axes.add_patch(Rectangle((x, y), width, height, fc=tint(edge), ec=edge, lw=1.2))
    if text:
        sheet.text(x + width / 2, y + height / 2, text, 9)


def zero_shards() -> Sheet:
    """Which shards of weights, gradients and optimizer state each of four ranks keeps."""
    sheet = Sheet(9.6, 5.0)
    left, top, cell, gap = 1.35, 4.3, (0.42, 0.24), 0.3
    for column, name in enumerate(_STAGES):
        x0 = left + column * (_RANKS * cell[0] + gap)
        sheet.text(x0 + _RANKS * cell[0] / 2, top + 0.32, name, 11, bold=True)
        for rank in range(_RANKS):
            y0 = top - rank * 1.0
            for row, (kept, stage) in enumerate(_KEPT):
                y = y0 - row * (cell[1] + 0.03) - cell[1]
                for shard in range(_RANKS):
                    there = column < stage or shard == rank
                    text = str(shard) if there else ""
                    _cell(sheet, x0 + shard * cell[0], y, cell, shard if there else None, text)
                if column == 0:
                    sheet.text(left - 0.1, y + cell[1] / 2, kept, 9, colour=FAINT, align="right")
            if column == 0:
                sheet.text(0.1, y0 - 0.39, f"rank {rank}", 10, bold=True, align="left")
    sheet.text(left + 3.8, 0.2, "a number is a shard; a dashed cell is not kept", 10, colour=FAINT)
    return sheet


def zero_row() -> Sheet:
    """A row of three parameters, cut into four shards, with padding at its end."""
    sheet = Sheet(8.4, 2.1)
    left, cell = 0.6, (0.6, 0.5)
    y, sizes, shard = 0.85, (5, 4, 1), 3
    start = 0
    for number, size in enumerate(sizes):
        for i in range(size):
            _cell(sheet, left + (start + i) * cell[0], y, cell, (start + i) // shard, f"{i}")
        middle = left + (start + size / 2) * cell[0]
        name = f"parameter {number}" if size > 1 else f"{number}"
        sheet.text(middle, y + 0.98, name, 10, bold=True)
        ends = [left + start * cell[0] + 0.05, left + (start + size) * cell[0] - 0.05]
        sheet.axes.plot(ends, [y + 0.75] * 2, color="#555555", lw=1.6)
        start += size
    for place in range(start, _RANKS * shard):
        _cell(sheet, left + place * cell[0], y, cell, None)
    sheet.text(left + 11 * cell[0], y + 0.98, "padding", 10, colour=FAINT)
    for rank in range(_RANKS):
        x = left + rank * shard * cell[0]
        sheet.axes.plot(
            [x + 0.05, x + shard * cell[0] - 0.05], [y - 0.22] * 2, color=colour_of(rank), lw=3
        )
        sheet.text(x + shard * cell[0] / 2, y - 0.5, f"shard of rank {rank}", 10)
    return sheet


PICTURES = (zero_shards, zero_row)
