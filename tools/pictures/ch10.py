"""Pictures of chapter 10: an indexed reduction inside one tensor."""

from __future__ import annotations

from grader.report.drawing import FAINT, Cell, Sheet, colour_of
from tools.pictures.common import EMPTY

#: The worked example of the chapter.
INPUT, SRC, INDEX = (1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (0, 1, 0, 1, 2, 1)


def _row(sheet: Sheet, x: float, y: float, name: str, cells: list[Cell], width: float) -> None:
    sheet.text(x - 0.2, y, name, 11, align="right")
    for i, cell in enumerate(cells):
        sheet.cell(x + i * width + 0.04, y - 0.2, width - 0.08, 0.4, cell)


def scatter_reduce() -> Sheet:
    """Every number of src goes to the place that index names."""
    sheet, x, width = Sheet(7.9, 3.95), 1.0, 0.95
    places = range(len(INPUT))
    _row(
        sheet, x, 3.65, "src", [Cell(str(v), (i,)) for v, i in zip(SRC, INDEX, strict=True)], width
    )
    _row(sheet, x, 3.17, "index", [Cell(f"→ {i}", (i,)) for i in INDEX], width)
    shift = width  # four places below the middle of six
    for j, i in enumerate(INDEX):
        start = (x + (j + 0.5) * width, 2.93)
        beside = [k for k, other in enumerate(INDEX) if other == i]
        spread = (beside.index(j) - (len(beside) - 1) / 2) * 0.2
        end = (x + shift + (i + 0.5) * width + spread, 1.99)
        sheet.arrow(start, end, colour=colour_of(i))
    own = [Cell(str(v), (i,), still=True) for i, v in enumerate(INPUT)]
    _row(sheet, x + shift, 1.75, "input", own, width)
    for i in places:
        sheet.text(x + shift + (i + 0.5) * width, 1.4, f"place {i}", 8, colour=FAINT)
    sums = ["+".join(str(v) for v, j in zip(SRC, INDEX, strict=True) if j == i) for i in places]
    terms = [f"{own}+{rest}" if rest else str(own) for own, rest in zip(INPUT, sums, strict=True)]
    _row(sheet, x + shift, 1.0, "sum", [Cell(t, (i,)) for i, t in enumerate(terms)], width)
    totals = [INPUT[i] + sum(v for v, j in zip(SRC, INDEX, strict=True) if j == i) for i in places]
    _row(
        sheet, x + shift, 0.45, "result", [Cell(str(t), (i,)) for i, t in enumerate(totals)], width
    )
    sheet.text(x + 5.1 * width, 0.56, "no index names place 3:", 9, colour=FAINT, align="left")
    sheet.text(x + 5.1 * width, 0.34, "it keeps its 4", 9, colour=FAINT, align="left")
    return sheet


def segment_mean() -> Sheet:
    """Rows that belong together become their mean; an empty segment becomes zeros."""
    sheet, ids = Sheet(7.2, 2.95), (2, 0, 2, 0, 0)
    sheet.text(1.9, 2.75, "values", 11, bold=True)
    sheet.text(0.62, 2.75, "segment_ids", 10)
    rows = [("4", "0"), ("1", "1"), ("6", "2"), ("2", "3"), ("3", "2")]
    means = [("2", "2"), ("0", "0"), ("5", "1")]
    for j, (i, row) in enumerate(zip(ids, rows, strict=True)):
        y = 2.15 - j * 0.48
        sheet.cell(0.42, y, 0.4, 0.38, Cell(str(i), (i,)))
        for k, text in enumerate(row):
            sheet.cell(1.3 + k * 0.6, y, 0.56, 0.38, Cell(text, (i,)))
        sheet.arrow((2.6, y + 0.19), (4.35, 1.98 - i * 0.7), colour=colour_of(i))
    sheet.text(5.05, 2.75, "means", 11, bold=True)
    for i, row in enumerate(means):
        y = 1.79 - i * 0.7
        empty = i not in ids
        for k, text in enumerate(row):
            sheet.cell(4.45 + k * 0.6, y, 0.56, 0.38, EMPTY if empty else Cell(text, (i,)))
            if empty:
                sheet.text(4.45 + k * 0.6 + 0.28, y + 0.19, text, 11)
        count = ids.count(i)
        what = f"{count} rows" if count else "no row: 0, not 0/0"
        sheet.text(5.8, y + 0.19, what, 9, colour=FAINT, align="left")
    return sheet


def three_names() -> Sheet:
    """Scatter, reduce-scatter and scatter_reduce side by side."""
    sheet = Sheet(10.2, 3.75)
    for x, title, kind in (
        (1.6, "scatter", "a collective: moves"),
        (5.1, "reduce-scatter", "a collective: moves and adds"),
        (8.6, "scatter_reduce", "one tensor, one process: adds"),
    ):
        sheet.text(x, 3.5, title, 12, bold=True)
        sheet.text(x, 3.24, kind, 9, colour=FAINT)
    for x in (3.35, 6.85):
        sheet.axes.plot([x, x], [0.15, 3.6], color="#dddddd", lw=1)
    names = "ABC"
    for r in range(3):
        # scatter: rank 0 has the pieces
        x = 0.25 + r * 0.95
        sheet.rank(x, 1.72, 0.8, 1.2, r)
        for k in range(3):
            cell = Cell(f"A{k}", (k,), still=k == 0) if r == 0 else EMPTY
            sheet.cell(x + 0.08, 2.56 - k * 0.38, 0.64, 0.32, cell)
        sheet.rank(x, 0.42, 0.8, 0.45, r)
        sheet.cell(x + 0.08, 0.48, 0.64, 0.32, Cell(f"A{r}", (r,), still=r == 0))
        # reduce-scatter: everyone has a piece for everyone
        x += 3.45
        sheet.rank(x, 1.72, 0.8, 1.2, r)
        for k in range(3):
            sheet.cell(x + 0.08, 2.56 - k * 0.38, 0.64, 0.32, Cell(f"{names[r]}{k}", (k,)))
        sheet.rank(x, 0.42, 0.8, 0.45, r)
        text = "+".join(f"{name}{r}" for name in names)
        sheet.cell(x + 0.04, 0.48, 0.72, 0.32, Cell(text, (r,)))
    for x in (1.6, 5.05):
        sheet.arrow((x, 1.4), (x, 0.98), width=2.2)
    x, index = 7.35, (0, 2, 0, 1)
    for j, i in enumerate(index):
        sheet.cell(x + j * 0.66, 2.56, 0.6, 0.36, Cell(f"s{j}", (i,)))
        sheet.text(x + j * 0.66 + 0.3, 2.42, f"→ {i}", 8, colour=FAINT)
        inner = 0.33 + i * 0.66 + (0.12 if j == 2 else -0.12 if j == 0 else 0)
        sheet.arrow((x + j * 0.66 + 0.3, 2.3), (x + 0.3 + inner, 0.98), colour=colour_of(i))
    for i, text in enumerate(("x0+s0+s2", "x1+s3", "x2+s1")):
        sheet.cell(x + 0.3 + i * 0.66, 0.48, 0.62, 0.36, Cell(text, (i,)))
    sheet.text(8.6, 0.26, "x: input, s: src; index names the places", 10)
    return sheet


PICTURES = (
    scatter_reduce,
    segment_mean,
    three_names,
)
