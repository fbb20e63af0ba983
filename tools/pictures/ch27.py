"""Pictures of chapter 27: context parallelism."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.patches import FancyArrowPatch, Rectangle

from grader.report.drawing import FAINT, Sheet, colour_of, tint

#: Ranks in all pictures.
_RANKS = 4


def _cell(
    sheet: Sheet, place: tuple[float, float], size: tuple[float, float], owner: int, text: str = ""
) -> None:
    """Draw a cell in the colour of a rank."""
    edge = colour_of(owner)
    sheet.axes.add_patch(Rectangle(place, *size, fc=tint(edge), ec=edge, lw=1.2))
    if text:
        sheet.text(place[0] + size[0] / 2, place[1] + size[1] / 2, text, 10)


def _arrow(sheet: Sheet, start: tuple[float, float], end: tuple[float, float]) -> None:
    sheet.axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, color="#666666", lw=1.2)
    )


def ring_of_blocks() -> Sheet:
    """Which block of keys and values each of four ranks works on, step by step."""
    sheet = Sheet(8.6, 4.3)
    left, top, cell = 2.1, 3.5, (0.85, 0.5)
    pitch = (1.6, 0.82)
    for step in range(_RANKS):
        x = left + step * pitch[0]
        sheet.text(x + cell[0] / 2, top + 0.5, f"step {step}", 11, bold=True)
        for rank in range(_RANKS):
            y = top - rank * pitch[1] - cell[1]
            owner = (rank - step) % _RANKS
            edge, later = colour_of(owner), owner > rank
            sheet.axes.add_patch(
                Rectangle((x, y), *cell, fc="white" if later else tint(edge), ec=edge, lw=1.2)
            )
            sheet.text(
                x + cell[0] / 2, y + cell[1] / 2, f"k{owner} v{owner}", 11,
                colour=FAINT if later else "#222222",
            )  # fmt: skip
            if step and rank:
                before = x - pitch[0] + cell[0]
                _arrow(sheet, (before, y + pitch[1] + 0.12), (x, y + cell[1] - 0.12))
            elif step:
                before = x - pitch[0] + cell[0]
                bottom = top - (_RANKS - 1) * pitch[1] - cell[1]
                _arrow(sheet, (before, bottom + cell[1] - 0.05), (x, y + 0.08))
    for rank in range(_RANKS):
        y = top - rank * pitch[1] - cell[1] / 2
        sheet.text(0.15, y, f"rank {rank}", 11, bold=True, align="left")
        sheet.text(1.5, y, f"q{rank}", 11)
    sheet.text(
        4.3,
        0.2,
        "not filled: with a causal mask, no query of this rank sees these keys",
        10,
        colour=FAINT,
    )
    return sheet


def heads_for_tokens() -> Sheet:
    """The cut along tokens and the cut along heads, and the exchanges between them."""
    sheet = Sheet(8.6, 3.9)
    cell, bottom = (0.62, 0.5), 0.85
    sides = ((1.15, lambda head, block: block), (5.65, lambda head, block: head))
    for x0, owner in sides:
        for head in range(_RANKS):
            y = bottom + (_RANKS - 1 - head) * cell[1]
            sheet.text(x0 - 0.12, y + cell[1] / 2, f"head {head}", 10, align="right")
            for block in range(_RANKS):
                rank = owner(head, block)
                _cell(sheet, (x0 + block * cell[0], y), cell, rank, str(rank))
        for block in range(_RANKS):
            x = x0 + (block + 0.5) * cell[0]
            sheet.text(x, bottom + _RANKS * cell[1] + 0.2, f"b{block}", 10)
    sheet.text(1.15 + 2 * cell[0], 3.5, "all heads of its tokens", 11, bold=True)
    sheet.text(5.65 + 2 * cell[0], 3.5, "all tokens of its head", 11, bold=True)
    _arrow(sheet, (3.8, 2.25), (4.85, 2.25))
    sheet.text(4.32, 2.5, "q, k, v", 10)
    _arrow(sheet, (4.85, 1.55), (3.8, 1.55))
    sheet.text(4.32, 1.3, "result", 10)
    sheet.text(
        4.3, 0.3, "a number is the rank that holds a cell; b0 to b3 are blocks of tokens", 10,
        colour=FAINT,
    )  # fmt: skip
    return sheet


def causal_splits() -> Sheet:
    """The pairs of query and key under a causal mask, in the colours of the ranks."""
    sheet = Sheet(9.6, 3.9)
    tokens, cell, bottom = 16, 0.165, 0.55
    splits: tuple[tuple[str, Callable[[int], int | None]], ...] = (
        ("consecutive", lambda i: i * _RANKS // tokens),
        ("striped", lambda i: i % _RANKS),
        ("eight chunks", lambda i: None),
    )
    for number, (name, owner) in enumerate(splits):
        x0 = 0.55 + number * 3.1
        sheet.text(x0 + tokens * cell / 2, bottom + tokens * cell + 0.3, name, 11, bold=True)
        for query in range(tokens):
            y = bottom + (tokens - 1 - query) * cell
            rank = owner(query)
            for key in range(query + 1):
                edge = "#999999" if rank is None else colour_of(rank)
                face = (0.95, 0.95, 0.95) if rank is None else tint(edge)
                sheet.axes.add_patch(
                    Rectangle((x0 + key * cell, y), cell, cell, fc=face, ec=edge, lw=0.5)
                )
            if rank is not None:
                sheet.text(x0 - 0.12, y + cell / 2, str(rank), 7)
        if owner(0) is None:
            for chunk in range(2 * _RANKS):
                y = bottom + (2 * _RANKS - chunk) * 2 * cell
                sheet.text(x0 - 0.12, y - cell, "?", 10, bold=True)
                sheet.axes.plot([x0 - 0.2, x0 + tokens * cell], [y, y], color="#666666", lw=0.8)
    sheet.text(
        4.8, 0.2, "a row is a query, a column a key; the number beside a row is its rank", 10,
        colour=FAINT,
    )  # fmt: skip
    return sheet


PICTURES = (ring_of_blocks, heads_for_tokens, causal_splits)
