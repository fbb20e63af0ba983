"""Pictures of chapter 26: tensor parallelism."""

from __future__ import annotations

from matplotlib.patches import FancyBboxPatch, Rectangle

from grader.report.drawing import FAINT, INK, Sheet, colour_of, tint

#: What ranks hold in common.
_COMMON = "#bbbbbb"


def _box(sheet: Sheet, x: float, y: float, width: float, text: str, colour: str) -> None:
    sheet.axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.2),
            width,
            0.4,
            boxstyle="round,pad=0.02,rounding_size=0.06",
            fc=tint(colour),
            ec=INK,
            lw=1.2,
        )
    )
    sheet.text(x, y, text, 10)


def _border(sheet: Sheet, y: float, name: str, forward: str, backward: str) -> None:
    """Draw f or g: a line across both ranks, with what it does each way."""
    sheet.axes.plot([0.9, 6.1], [y, y], color=INK, lw=2.2)
    sheet.text(0.55, y, name, 14, bold=True)
    for place, (way, what) in enumerate((("forward", forward), ("backward", backward))):
        sheet.text(
            6.35, y + 0.12 - 0.24 * place, f"{way}: {what}", 9.5,
            colour=INK if "all" in what else FAINT, bold="all" in what, align="left",
        )  # fmt: skip


def tensor_parallel_block() -> Sheet:
    """A transformer block on two ranks: what both compute, and what each has a half of."""
    sheet = Sheet(8.4, 7.4)
    lanes = (2.2, 4.8)
    for rank, x in enumerate(lanes):
        sheet.text(x, 7.15, f"rank {rank}", 11, bold=True)
    halves = (
        ("heads 0 … 3", "heads 4 … 7"),
        ("their rows", "their rows"),
        ("left half of the columns", "right half of the columns"),
        ("GELU, upper half of the rows", "GELU, lower half of the rows"),
    )
    f, g = ("f", "nothing", "all-reduce"), ("g", "all-reduce", "nothing")
    steps: tuple[str | tuple[str, str] | tuple[str, str, str], ...] = (
        "x", "norm", f, halves[0], halves[1], g, "add to x",
        "norm", f, halves[2], halves[3], g, "add",
    )  # fmt: skip
    top, step_height = 6.75, 0.54
    for place, step in enumerate(steps):
        y = top - place * step_height
        if isinstance(step, tuple) and len(step) == 3:
            _border(sheet, y, *step)
            continue
        for rank, x in enumerate(lanes):
            text = step if isinstance(step, str) else step[rank]
            colour = _COMMON if isinstance(step, str) else colour_of(rank)
            _box(sheet, x, y, 1.5 if isinstance(step, str) else 2.4, text, colour)
            if place:
                sheet.arrow((x, y + step_height - 0.22), (x, y + 0.24))
    sheet.text(6.35, top - 0.5 * step_height, "grey: the same on", 9.5, colour=FAINT, align="left")
    sheet.text(6.35, top - 0.9 * step_height, "all ranks", 9.5, colour=FAINT, align="left")
    return sheet


def _row(sheet: Sheet, x: float, y: float, cells: tuple[str, ...], rank: int, mark: int) -> None:
    """Draw the logits of a rank, with a thick frame around one of them."""
    for i, text in enumerate(cells):
        colour = colour_of(rank)
        edge, line = (INK, 2.4) if i == mark else (colour, 1.2)
        sheet.axes.add_patch(
            Rectangle(
                (x + i * 0.5, y),
                0.5,
                0.44,
                fc=tint(colour),
                ec=edge,
                lw=line,
                zorder=2 + (i == mark),
            )
        )
        sheet.text(x + i * 0.5 + 0.25, y + 0.22, text, 11)


def vocab_parallel_loss() -> Sheet:
    """A row of logits on two ranks, and the three numbers that they add up or compare."""
    sheet = Sheet(9.3, 3.5)
    for rank, (y, cells, mark, words) in enumerate(
        (
            (2.35, ("2", "7", "1"), -1, ("7", "e⁻⁵ + e⁰ + e⁻⁶", "0")),
            (1.4, ("4", "5"), 1, ("5", "e⁻³ + e⁻²", "5")),
        )
    ):
        sheet.text(0.1, y + 0.22, f"rank {rank}", 11, bold=True, align="left")
        _row(sheet, 0.95, y, cells, rank, mark)
        for x, word in zip((3.7, 5.8, 7.9), words, strict=True):
            _box(sheet, x, y + 0.22, 1.6, word, colour_of(rank))
    for x, head, op, result in (
        (3.7, "largest", "MAX", "7"),
        (5.8, "sum of exp(l − 7)", "SUM", "1.19"),
        (7.9, "target's logit", "SUM", "5"),
    ):
        sheet.text(x, 3.2, head, 10.5, bold=True)
        sheet.text(x + 0.12, 1.03, f"all-reduce, {op}", 9.5, colour=FAINT, align="left")
        sheet.arrow((x, 1.36), (x, 0.72))
        _box(sheet, x, 0.5, 1.6, result, _COMMON)
    sheet.text(1.2, 3.2, "logits of a row", 10.5, bold=True)
    sheet.text(1.95, 1.1, "the target", 9.5, colour=FAINT)
    sheet.text(0.1, 0.5, "loss = log 1.19 + 7 − 5", 10, align="left")
    return sheet


PICTURES = (tensor_parallel_block, vocab_parallel_loss)
