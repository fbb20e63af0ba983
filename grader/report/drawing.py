"""The shapes that the pictures of the course are made of.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart
(https://jfly.uni-koeln.de/color/), and every coloured shape carries a label
as well.  The background is opaque white; the course's pictures are put on a card
(``tools/pictures/common.py``), and time lines are darkened for dark pages.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.patheffects import withStroke
from PIL import Image

__all__ = ["Cell", "Sheet", "before_after", "colour_of", "darkened", "stacked"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#666666")
INK = "#222222"
FAINT = "#6a6a6a"

#: Pixels per inch, enough for screens with two dots per pixel.
DPI = 160


#: A colour: its name, or red, green and blue from 0 to 1.
Colour = str | tuple[float, float, float]


def colour_of(rank: int) -> str:
    """Return the colour of the data that a rank starts with."""
    return _COLOURS[rank % len(_COLOURS)]


def tint(colour: str, strength: float = 0.35) -> tuple[float, float, float]:
    """Return a colour mixed with white, light enough for dark text on it."""
    r, g, b = matplotlib.colors.to_rgb(colour)
    return (1 - strength * (1 - r), 1 - strength * (1 - g), 1 - strength * (1 - b))


@dataclass(frozen=True)
class Cell:
    """A piece of data.

    Attributes:
        text: its label.
        owners: ranks whose data is in it; none for an empty place.
        still: whether it stays where it is, and is drawn dashed.
    """

    text: str = ""
    owners: tuple[int, ...] = ()
    still: bool = False


class Sheet:
    """A drawing surface of ``width`` by ``height`` inches; y grows upwards."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(0, height)
        self.axes.set_axis_off()

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 11,
        bold: bool = False,
        colour: str = INK,
        align: str = "center",
        halo: Colour | None = None,
    ) -> None:
        """Write words at a point, centred by default; a ``halo`` hides lines behind them."""
        self.axes.text(
            x,
            y,
            text,
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=colour,
            ha=align,
            va="center",
            family="DejaVu Sans",
            path_effects=[withStroke(linewidth=3, foreground=halo)] if halo else None,
            zorder=5 if halo else None,
        )

    def cell(self, x: float, y: float, width: float, height: float, cell: Cell) -> None:
        """Draw a piece of data with its lower left corner at (x, y)."""
        if cell.owners:
            part = width / len(cell.owners)
            for i, owner in enumerate(cell.owners):
                fill = tint(colour_of(owner))
                self.axes.add_patch(Rectangle((x + i * part, y), part, height, fc=fill, lw=0))
        line = "--" if cell.still else "-"
        edge = INK if cell.owners else "#bbbbbb"
        self.axes.add_patch(Rectangle((x, y), width, height, fill=False, ec=edge, lw=1.3, ls=line))
        # the widest letter is about 0.011 inches wide per point of size
        size = min(11.0, width / (0.0115 * max(len(cell.text), 1)))
        self.text(x + width / 2, y + height / 2, cell.text, size)

    def rank(self, x: float, y: float, width: float, height: float, rank: int) -> None:
        """Draw the outline of a rank's memory, with its name below."""
        self.axes.add_patch(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle="round,pad=0.02,rounding_size=0.06",
                fc="#f7f7f7",
                ec=FAINT,
                lw=1,
            )
        )
        self.text(x + width / 2, y - 0.16, f"rank {rank}", 10)

    def arrow(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: str = INK,
        bend: float = 0.0,
        width: float = 1.6,
        dashed: bool = False,
        zorder: float = 1.0,
    ) -> None:
        """Draw an arrow between two points, bent to its left by ``bend``.

        What has a higher ``zorder`` hides it.
        """
        self.axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>",
                mutation_scale=13,
                color=colour,
                lw=width,
                ls="--" if dashed else "-",
                connectionstyle=f"arc3,rad={bend}",
                shrinkA=0,
                shrinkB=0,
                zorder=zorder,
            )
        )

    def bar(
        self,
        x: float,
        y: float,
        width: float,
        text: str,
        colour: str,
        hatch: str = "",
        bold: bool = False,
    ) -> None:
        """Draw a stretch of time on a lane; a ``bold`` one has a thick dark frame."""
        box = (x, y - 0.15), width, 0.3
        self.axes.add_patch(Rectangle(*box, fc=tint(colour), ec=colour, lw=1.2, hatch=hatch))
        if bold:
            self.axes.add_patch(Rectangle(*box, fill=False, ec=INK, lw=2.6))
        if text:
            self.text(x + width / 2, y, text, 9)

    def small_png(self, dpi: int) -> bytes:
        """Return the drawing as a PNG with few colours, a quarter of the size, for notebooks."""
        drawn, small = io.BytesIO(), io.BytesIO()
        self.save(drawn, dpi=dpi)
        Image.open(drawn).convert("RGB").quantize(64).save(small, "PNG", optimize=True)
        return small.getvalue()

    def save(self, path: Path | IO[bytes], dpi: int = DPI) -> None:
        """Write a PNG that does not depend on the day or the machine."""
        self.figure.savefig(path, format="png", dpi=dpi, metadata={"Software": None})


def darkened(png: bytes) -> bytes:
    """Return a picture of :meth:`Sheet.small_png` for a dark page: light is dark, hues stay."""
    image = Image.open(io.BytesIO(png))
    colours = image.getpalette() or []
    found: list[int] = []
    for i in range(0, len(colours), 3):
        hue, light, strength = colorsys.rgb_to_hls(*(part / 255 for part in colours[i : i + 3]))
        # white becomes the ground of JupyterLab's dark theme
        turned = colorsys.hls_to_rgb(hue, 0.067 + 0.933 * (1 - light), strength * 0.8)
        found += [round(part * 255) for part in turned]
    image.putpalette(found)
    dark = io.BytesIO()
    image.save(dark, "PNG", optimize=True)
    return dark.getvalue()


#: The cells of each rank, from the top.
Columns = Sequence[Sequence[Cell]]

CELL_WIDTH, CELL_HEIGHT, GAP = 0.74, 0.36, 0.16


def before_after(title: str, before: Columns, after: Columns) -> Sheet:
    """Draw ranks side by side, and what they hold before and after an operation."""
    return stacked((title, before, after))


def stacked(*operations: tuple[str, Columns, Columns]) -> Sheet:
    """Draw several operations below each other: their names, and cells before and after."""
    heights = [_rows(before, after) * CELL_HEIGHT + 1.2 for _, before, after in operations]
    ranks = max(len(before) for _, before, _ in operations)
    sheet = Sheet(2 * _block(ranks) + 1.5, sum(heights))
    bottom = sum(heights)
    for (title, before, after), height in zip(operations, heights, strict=True):
        bottom -= height
        _operation(sheet, bottom, title, before, after)
    return sheet


def _rows(before: Columns, after: Columns) -> int:
    return max(len(column) for column in (*before, *after))


def _block(ranks: int) -> float:
    return ranks * (CELL_WIDTH + GAP) - GAP


def _operation(sheet: Sheet, bottom: float, title: str, before: Columns, after: Columns) -> None:
    """Draw the cells before, an arrow, and the cells after."""
    rows, block = _rows(before, after), _block(len(before))
    height = rows * CELL_HEIGHT + 1.2
    for x0, columns, name in ((0.3, before, "before"), (block + 1.2, after, "after")):
        sheet.text(x0 + block / 2, bottom + height - 0.25, name, 10, colour=FAINT)
        for rank, column in enumerate(columns):
            x = x0 + rank * (CELL_WIDTH + GAP)
            sheet.rank(x, bottom + 0.42, CELL_WIDTH, rows * CELL_HEIGHT + 0.1, rank)
            for i, cell in enumerate(column):
                y = bottom + 0.47 + (rows - 1 - i) * CELL_HEIGHT
                sheet.cell(x + 0.05, y + 0.02, CELL_WIDTH - 0.1, CELL_HEIGHT - 0.04, cell)
    middle, y = block + 0.75, bottom + height / 2
    sheet.arrow((middle - 0.32, y), (middle + 0.32, y), width=2.2)
    # lines of a title are stacked, the last one lowest
    for i, line in enumerate(reversed(title.split("\n"))):
        size = 9 if len(line) > 8 else 10
        sheet.text(middle, y + 0.22 + 0.18 * i, line, size, bold=True)
