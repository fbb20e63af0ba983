"""Pictures of chapter 02: broadcast."""

from __future__ import annotations

from grader.report.drawing import FAINT, Cell, Sheet, before_after, colour_of
from tools.pictures.common import ROOT_RANK, N, own


def broadcast() -> Sheet:
    """Everyone ends with the root's x."""
    before = [[own(rank, rank != ROOT_RANK)] for rank in range(N)]
    after = [[own(ROOT_RANK, rank == ROOT_RANK)] for rank in range(N)]
    return before_after("broadcast", before, after)


def broadcast_rounds() -> Sheet:
    """Who sends in which round: a flat broadcast and a binomial tree."""
    sheet, size = Sheet(8, 4.2), 8
    flat = [[(0, rank)] for rank in range(1, size)]
    tree = [[(r, r + step) for r in range(step)] for step in (1, 2, 4)]
    for x0, rounds, title in (
        (0.9, flat, "flat: 7 rounds"),
        (4.9, tree, "binomial tree: 3 rounds"),
    ):
        sheet.text(x0 + 1.35, 4.0, title, 11, bold=True)
        for rank in range(size):
            x = x0 + rank * 0.38
            sheet.text(x, 3.65, str(rank), 10)
        for i, messages in enumerate([[], *rounds]):
            y = 3.35 - i * 0.42
            has = {0} | {dst for past in rounds[:i] for _, dst in past}
            sheet.text(x0 - 0.42, y, "start" if i == 0 else f"round {i}", 8, colour=FAINT)
            for rank in range(size):
                cell = Cell("", (0,) if rank in has else ())
                sheet.cell(x0 + rank * 0.38 - 0.12, y - 0.11, 0.24, 0.22, cell)
            for src, dst in messages:
                start = (x0 + src * 0.38, y + 0.31)
                sheet.arrow(start, (x0 + dst * 0.38, y + 0.12), colour=colour_of(5), width=1.1)
    return sheet


def tree_and_chain() -> Sheet:
    """When each rank receives 100 MB: from a tree, and from a chain of 100 pieces."""
    sheet, size = Sheet(8, 2.85), 8
    latency, whole, pieces = 0.01, 10.0, 100  # milliseconds, as in the chapter
    one = latency + whole / pieces  # what a piece takes
    tree = [(rank.bit_length() - 1) * (latency + whole) for rank in range(1, size)]
    chain = [(rank - 1) * one for rank in range(1, size)]
    scale = 0.093
    for x0, starts, length, title in (
        (0.85, tree, latency + whole, "binomial tree"),
        (4.75, chain, pieces * one, "chain of 100 pieces"),
    ):
        done = max(starts) + length
        sheet.text(x0, 2.66, f"{title}: {done:.1f} ms", 11, bold=True, align="left")
        for rank, start in enumerate(starts, 1):
            y = 2.36 - (rank - 1) * 0.27
            sheet.text(x0 - 0.42, y, f"rank {rank}", 9)
            box = (x0 + start * scale, y - 0.1, length * scale, 0.2)
            sheet.cell(*box, Cell("", (0,)))
        for tick in (0, 10, 20, 30):
            sheet.text(x0 + tick * scale, 0.28, f"{tick}", 9, colour=FAINT)
        sheet.arrow((x0, 0.5), (x0 + 33 * scale, 0.5), colour=FAINT, width=1)
        sheet.text(x0 + 33 * scale, 0.28, "ms", 9, colour=FAINT)
    return sheet


PICTURES = (
    broadcast,
    broadcast_rounds,
    tree_and_chain,
)
