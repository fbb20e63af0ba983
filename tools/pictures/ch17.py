"""Pictures of chapter 17: the cube of a matrix product, its cuts, and two layers in a row."""

from __future__ import annotations

from matplotlib.patches import FancyBboxPatch, Polygon

from grader.report.drawing import FAINT, INK, Sheet, colour_of, tint

#: Inches on paper of one step along m (down), k (to the right, back) and n (to the right).
_M, _K, _N = (0.0, -0.5), (0.3, 0.22), (0.56, 0.0)

#: Colour of what every rank has, or has a term of.
_SHARED = "#9e9e9e"

#: Steps along each axis: as many as ranks, so that each cut makes equal slabs.
_SIZE = 3

_TITLES = {
    "m": ("cut along m", "rows of X and of Y"),
    "n": ("cut along n", "columns of W and of Y"),
    "k": ("cut along k", "columns of X, rows of W"),
}
_ASKS = {
    "m": ("Y: each rank has its rows", "nothing is sent", "gradient of W: all-reduce"),
    "n": ("Y: each rank has its columns", "all-gather, if all need Y", "gradient of X: all-reduce"),
    "k": ("Y: each rank has a partial sum", "all-reduce", "backward: nothing is sent"),
}


def _at(x: float, y: float, m: float, k: float, n: float) -> tuple[float, float]:
    return (
        x + m * _M[0] + k * _K[0] + n * _N[0],
        y + m * _M[1] + k * _K[1] + n * _N[1],
    )


def _face(
    sheet: Sheet,
    x: float,
    y: float,
    corners: list[tuple[float, float, float]],
    held: int | str,
    shade: float,
) -> None:
    """Draw one piece of a tensor: a rank has it, or what all of them have."""
    points = [_at(x, y, *corner) for corner in corners]
    fill = tint(colour_of(held), shade) if isinstance(held, int) else tint(_SHARED, shade)
    sheet.axes.add_patch(Polygon(points, closed=True, fc=fill, ec=INK, lw=1))
    middle = (sum(px for px, _ in points) / 4, sum(py for _, py in points) / 4)
    sheet.text(*middle, str(held), 10 if isinstance(held, int) else 8, bold=True)


def _cube(sheet: Sheet, x: float, y: float, axis: str) -> None:
    """The front face is Y (m, n), the right one X (m, k), the top one W (k, n)."""
    s = _SIZE
    for a in range(s):
        for b in range(s):
            # who has this piece of Y, of X and of W
            held: dict[str, tuple[int | str, int | str, int | str]] = {
                "m": (a, a, "all"),
                "n": (b, "all", b),
                "k": ("0+1+2", b, a),
            }
            front, right, top = held[axis]
            _face(
                sheet,
                x,
                y,
                [(a, 0, b), (a, 0, b + 1), (a + 1, 0, b + 1), (a + 1, 0, b)],
                front,
                0.25,
            )
            _face(
                sheet,
                x,
                y,
                [(a, b, s), (a, b + 1, s), (a + 1, b + 1, s), (a + 1, b, s)],
                right,
                0.5,
            )
            _face(
                sheet, x, y, [(0, a, b), (0, a, b + 1), (0, a + 1, b + 1), (0, a + 1, b)], top, 0.4
            )


def product_cube() -> Sheet:
    """Each little cube is one multiplication; a cut along an axis makes slabs for ranks."""
    sheet = Sheet(10.2, 4.6)
    for i, axis in enumerate("mnk"):
        x, y = 0.75 + i * 3.3, 2.95
        title, held = _TITLES[axis]
        sheet.text(x + 1.2, 4.32, title, 12, bold=True)
        sheet.text(x + 1.2, 4.06, held, 10, colour=FAINT)
        _cube(sheet, x, y, axis)
        front, side = _at(x, y, 1.5, 0, 0), _at(x, y, 3, 1.5, 3)
        sheet.text(front[0] - 0.2, front[1], "m", 11, bold=True)
        sheet.text(side[0] + 0.18, side[1] - 0.12, "k", 11, bold=True)
        under = _at(x, y, 3, 0, 1.5)
        sheet.text(under[0], under[1] - 0.17, "n", 11, bold=True)
        for line, text in enumerate(_ASKS[axis]):
            sheet.text(x + 1.2, 0.8 - line * 0.27, text, 10, bold=line == 1)
    return sheet


def _box(sheet: Sheet, x: float, y: float, width: float, text: str, colour: str) -> None:
    sheet.axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.22),
            width,
            0.44,
            boxstyle="round,pad=0.02,rounding_size=0.06",
            fc=tint(colour),
            ec=INK,
            lw=1.2,
        )
    )
    sheet.text(x, y, text, 11)


def column_then_row() -> Sheet:
    """Columns, then rows: between the two products nothing is sent."""
    sheet = Sheet(10.2, 3.3)
    lanes = (2.35, 1.15)
    start, columns, between, rows, end = 1.0, 3.1, 5.0, 6.9, 9.2
    for rank, y in enumerate(lanes):
        colour = colour_of(rank)
        sheet.text(0.35, y + 0.42, f"rank {rank}", 11, bold=True)
        _box(sheet, start, y, 0.7, "X", "#bbbbbb")
        _box(sheet, columns, y, 1.25, f"X A{'₀₁'[rank]}", colour)
        _box(sheet, between, y, 1.25, f"relu: H{'₀₁'[rank]}", colour)
        _box(sheet, rows, y, 1.25, f"H{'₀₁'[rank]} B{'₀₁'[rank]}", colour)
        _box(sheet, end, y, 0.7, "Z", "#bbbbbb")
        for a, b in ((1.4, 2.4), (3.8, 4.3), (5.7, 6.2), (7.6, 8.8)):
            sheet.arrow((a, y), (b, y))
    middle = sum(lanes) / 2
    for x, name, forward, backward in (
        (1.9, "Share", "forward: nothing", "backward: all-reduce"),
        (8.2, "Add", "forward: all-reduce", "backward: nothing"),
    ):
        sheet.axes.plot([x, x], [lanes[1] - 0.4, lanes[0] + 0.4], color=INK, lw=2.2)
        sheet.text(x, middle, name, 11, bold=True, halo="white")
        sheet.text(x, 0.45, forward, 10, bold="all" in forward)
        sheet.text(x, 0.2, backward, 10, bold="all" in backward)
    sheet.text(columns, 3.05, "columns of A", 11, bold=True)
    sheet.text(between, 3.05, "each number alone", 11, bold=True)
    sheet.text(rows, 3.05, "rows of B", 11, bold=True)
    sheet.text((columns + rows) / 2, 0.33, "nothing is sent here, forward or backward", 10)
    return sheet


PICTURES = (product_cube, column_then_row)
