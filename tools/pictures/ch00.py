"""Pictures of chapter 00: ranks and groups."""

from __future__ import annotations

import math

from grader.report.drawing import FAINT, Cell, Sheet
from tools.pictures.common import N


def ranks() -> Sheet:
    """One program, four processes, four memories."""
    sheet = Sheet(8, 2.75)
    sheet.cell(0.4, 2.0, 7.2, 0.55, Cell())
    sheet.text(4, 2.27, "one program:  rank = dist.get_rank();  x = torch.tensor(rank)", 11)
    for rank in range(N):
        x = 0.6 + rank * 1.8
        sheet.arrow((x + 0.7, 1.98), (x + 0.7, 1.36))
        sheet.rank(x, 0.45, 1.4, 0.85, rank)
        sheet.cell(x + 0.2, 0.62, 1.0, 0.45, Cell(f"x = {rank}", (rank,)))
    return sheet


def ring() -> Sheet:
    """Ranks on a ring, and the neighbours of one of them."""
    sheet, size = Sheet(5, 3.6), 5
    cx, cy, radius = 2.5, 1.75, 1.25
    places = [
        (
            cx + radius * math.sin(2 * math.pi * rank / size),
            cy + radius * math.cos(2 * math.pi * rank / size),
        )
        for rank in range(size)
    ]
    for rank, (x, y) in enumerate(places):
        nx, ny = places[(rank + 1) % size]
        length = math.dist((x, y), (nx, ny))
        dx, dy = (nx - x) / length, (ny - y) / length
        sheet.arrow((x + 0.38 * dx, y + 0.38 * dy), (nx - 0.38 * dx, ny - 0.38 * dy), colour=FAINT)
    for rank, (x, y) in enumerate(places):
        sheet.cell(x - 0.3, y - 0.22, 0.6, 0.44, Cell(str(rank), (rank,)))
    x, y = places[0]
    sheet.text(x, y + 0.42, "rank 0", 10, bold=True)
    sheet.text(places[4][0] - 0.1, places[4][1] + 0.42, "left of rank 0", 10)
    sheet.text(places[1][0] + 0.1, places[1][1] + 0.42, "right of rank 0", 10)
    return sheet


PICTURES = (
    ranks,
    ring,
)
