"""Pictures of chapter 24: FSDP."""

from __future__ import annotations

from matplotlib.patches import FancyArrowPatch, Rectangle

from grader.report.drawing import FAINT, Sheet, colour_of, tint

_LAYERS = 4

_RANKS = 4


def _box(
    sheet: Sheet, x: float, y: float, width: float, height: float, colour: int, faint: bool = False
) -> None:
    """Draw a box in a colour; a faint one has a dashed frame."""
    edge = colour_of(colour)
    sheet.axes.add_patch(
        Rectangle(
            (x, y), width, height, ec=edge, lw=1.2,
            fc="none" if faint else tint(edge), ls=(0, (3, 2)) if faint else "-",
        )
    )  # fmt: skip


def fsdp_step() -> Sheet:
    """When the whole weights of each of four layers are on a rank, in a step."""
    sheet = Sheet(9.6, 3.9)
    left, top, slot, height = 1.15, 3.05, 0.9, 0.4
    first = left + slot  # where forward begins, after the first gather
    turns = [*range(_LAYERS), *reversed(range(_LAYERS))]
    for layer in range(_LAYERS):
        y = top - layer * 0.68 - height
        sheet.text(left - 0.15, y + height / 2, f"layer {layer}", 10, align="right")
        sheet.axes.add_patch(
            Rectangle(
                (left, y), (1 + len(turns)) * slot, 0.07, fc=colour_of(layer), ec="none", alpha=0.55
            )
        )
        for place, turn in enumerate(turns):
            if turn != layer:
                continue
            x = first + place * slot
            # the last layer of forward is the first of backward
            again = place and turns[place - 1] == layer
            if not again:
                _box(sheet, x - slot, y, slot, height, layer, faint=True)
                sheet.text(x - slot / 2, y + height / 2 + 0.04, "gather", 8, colour=FAINT)
            _box(sheet, x, y, slot, height, layer)
            what = "forward" if place < _LAYERS else "backward"
            sheet.text(x + slot / 2, y + height / 2 + 0.04, what, 9)
    middle = first + _LAYERS * slot
    sheet.axes.plot([middle] * 2, [0.28, top + 0.15], color="#888888", lw=1, ls=":")
    sheet.text(first + 2 * slot, top + 0.4, "forward", 11, bold=True)
    sheet.text(middle + 2 * slot, top + 0.4, "backward", 11, bold=True)
    sheet.text(
        left + (1 + len(turns)) / 2 * slot,
        0.08,
        "a box is whole weights, dashed while they are gathered; the thin bar is this rank's shard",
        9,
        colour=FAINT,
    )
    return sheet


def _arrow(sheet: Sheet, x: float, y: float, text: str) -> None:
    """Draw an arrow from one column of the layer's picture to the next."""
    sheet.axes.add_patch(
        FancyArrowPatch(
            (x, y), (x + 0.95, y), arrowstyle="-|>", mutation_scale=14, lw=1.4, color="#555555",
            shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip
    sheet.text(x + 0.47, y + 0.2, text, 9)


def fsdp_layer() -> Sheet:
    """Shards become whole weights, and whole gradients become shards of the mean."""
    sheet = Sheet(9.6, 3.5)
    cell, top = (0.36, 0.3), 2.75
    columns = (1.0, 3.5, 6.0, 8.0)
    heads = ("between turns", "while it computes", "own gradients", "mean")
    columns = (0.95, 2.9, 5.35, 7.85)
    for x, head in zip(columns, heads, strict=True):
        width = (_RANKS if x in columns[1:3] else 1) * cell[0]
        sheet.text(x + width / 2, top + 0.3, head, 10, bold=True)
    for rank in range(_RANKS):
        y = top - rank * 0.62 - cell[1]
        sheet.text(0.05, y + cell[1] / 2, f"rank {rank}", 10, align="left")
        _box(sheet, columns[0], y, *cell, rank)
        sheet.text(columns[0] + cell[0] / 2, y + cell[1] / 2, f"W{rank}", 8)
        for shard in range(_RANKS):
            _box(sheet, columns[1] + shard * cell[0], y, *cell, shard)
            sheet.text(columns[1] + (shard + 0.5) * cell[0], y + cell[1] / 2, f"W{shard}", 8)
            _box(sheet, columns[2] + shard * cell[0], y, *cell, rank)
            sheet.text(columns[2] + (shard + 0.5) * cell[0], y + cell[1] / 2, f"g{shard}", 8)
        _box(sheet, columns[3], y, *cell, rank)
        sheet.text(columns[3] + cell[0] / 2, y + cell[1] / 2, f"ḡ{rank}", 8)
    middle = top - 1.5 * 0.62 - cell[1] / 2
    _arrow(sheet, columns[0] + cell[0] + 0.3, middle, "all-gather")
    _arrow(sheet, columns[1] + _RANKS * cell[0] + 0.03, middle, "backward")
    _arrow(sheet, columns[2] + _RANKS * cell[0] + 0.06, middle, "reduce-scatter")
    sheet.text(
        4.6, 0.1, "a weight's colour is its shard's; a gradient's, the rank that computed it", 9,
        colour=FAINT,
    )  # fmt: skip
    return sheet


PICTURES = (fsdp_step, fsdp_layer)
