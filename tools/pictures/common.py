"""What pictures have in common: the card they stand on, and four ranks with a root."""

from __future__ import annotations

import io

from PIL import Image, ImageChops, ImageDraw

from grader.report.drawing import Cell, Sheet

#: The ground of a card and its edge: a card on a white page, and no glare on a dark one.  Markdown
#: has one picture for all themes; GitHub, JupyterLab, VS Code and Sphinx each have another way to
#: choose between two, and would show both where they do not know it.
GROUND, EDGE = (0xEE, 0xF1, 0xF5), (0xC2, 0xCA, 0xD3)

#: Pixels: around a sheet, of the corners, of the edge.
_MARGIN, _RADIUS, _EDGE = 14, 22, 2

#: Dots of a mask for each dot of the picture, across and down, so that round corners are smooth.
_FINE = 4

N = 4
NAMES = "ABCD"

#: The root of the pictures: not rank 0, so that nobody takes 0 for a rule.
ROOT_RANK = 1

EMPTY = Cell()


def own(rank: int, still: bool = False) -> Cell:
    """What a rank holds at first: the letter of its own."""
    return Cell(NAMES[rank], (rank,), still)


def card(sheet: Sheet) -> bytes:
    """Return a drawing on a card with round corners, transparent around it, as a PNG."""
    drawn, found = io.BytesIO(), io.BytesIO()
    sheet.save(drawn)
    picture = Image.open(drawn).convert("RGB")
    size = (picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN)
    whole = Image.new("RGB", size, "white")
    whole.paste(picture, (_MARGIN, _MARGIN))
    # white becomes the ground wherever it is drawn: behind words, in cells, around them
    whole = ImageChops.multiply(whole, Image.new("RGB", size, GROUND))
    framed = Image.new("RGB", size, EDGE)
    framed.paste(whole, mask=_rounded(size, _EDGE))
    framed.putalpha(_rounded(size, 0))
    framed.save(found, "PNG", optimize=True)
    return found.getvalue()


def _rounded(size: tuple[int, int], inset: int) -> Image.Image:
    """Return the mask of a card, smaller by ``inset`` on every side."""
    width, height = size
    mask = Image.new("L", (_FINE * width, _FINE * height), 0)
    box = [_FINE * edge for edge in (inset, inset, width - inset, height - inset)]
    ImageDraw.Draw(mask).rounded_rectangle(
        (box[0], box[1], box[2] - 1, box[3] - 1), _FINE * (_RADIUS - inset), 255
    )
    return mask.resize(size, Image.Resampling.BOX)
