"""Pictures of chapter 08: all-to-all."""

from __future__ import annotations

from grader.report.drawing import FAINT, Cell, Sheet, before_after, colour_of
from tools.pictures.common import NAMES, N


def all_to_all() -> Sheet:
    """The matrix of chunks is transposed; its diagonal stays."""
    before = [[Cell(f"{NAMES[r]}{j}", (r,), r == j) for j in range(N)] for r in range(N)]
    after = [[Cell(f"{NAMES[j]}{r}", (j,), r == j) for j in range(N)] for r in range(N)]
    return before_after("all-to-all", before, after)


#: Who sends to whom in which round if all begin with rank 0.
ZERO_FIRST = (
    ((0, 1), (1, 0)),
    ((0, 2), (2, 0)),
    ((0, 3), (1, 2), (2, 1), (3, 0)),
    ((1, 3), (3, 1)),
    ((2, 3), (3, 2)),
)


def all_to_all_rounds() -> Sheet:
    """All send to rank 0 first, and peers that rotate."""
    rotating = [[(r, (r + s) % N) for r in range(N)] for s in range(1, N)]
    sheet = Sheet(8, 0.6 + 0.78 * len(ZERO_FIRST))
    top = 0.35 + 0.78 * len(ZERO_FIRST)
    for x0, rounds, title in (
        (1.1, ZERO_FIRST, f"rank 0 first: {len(ZERO_FIRST)} rounds"),
        (5.1, rotating, f"peers rotate: {len(rotating)} rounds"),
    ):
        xs = [x0 + 0.75 * rank for rank in range(N)]
        sheet.text(x0 + 1.12, top, title, 11, bold=True)
        for i, messages in enumerate(rounds):
            y = top - 0.62 - i * 0.78
            sheet.text(x0 - 0.62, y, f"round {i + 1}", 9, colour=FAINT)
            for rank, x in enumerate(xs):
                sheet.cell(x - 0.17, y - 0.13, 0.34, 0.26, Cell(str(rank), (rank,)))
            for src, dst in messages:
                side, way = (1, -1) if src < dst else (-1, 1)
                bend = -0.32 if abs(dst - src) == 1 else -0.2
                start = (xs[src] - way * 0.06, y + side * 0.14)
                end = (xs[dst] + way * 0.06, y + side * 0.14)
                sheet.arrow(start, end, colour=colour_of(src), bend=bend, width=1.4)
    return sheet


#: The router of the chapter: which expert each token of each rank goes to.
ROUTER = ((0, 2, 2, 1), (2, 2, 2, 0), (1, 2, 0, 2))


def moe_dispatch() -> Sheet:
    """Tokens travel to their experts, and back to where they were."""
    ranks = range(len(ROUTER))
    mine = [[Cell(str(10 * (r + 1) + t), (r,)) for t in range(4)] for r in ranks]
    arrived = [
        [mine[r][t] for r in ranks for t, to in enumerate(ROUTER[r]) if to == e] for e in ranks
    ]
    done = [
        [Cell(str(10 * (r + 1) + t + 100 * (ROUTER[r][t] + 1)), (r,)) for t in range(4)]
        for r in ranks
    ]
    width, height, lane, top = 0.44, 0.34, 0.95, 2.3
    sheet = Sheet(10, 3.05)
    for x, title in ((1.45, "tokens"), (5.1, "at the experts"), (8.6, "results")):
        sheet.text(x, top + 0.5, title, 10, bold=True)
    for r in ranks:
        y = top - r * lane
        sheet.text(0.32, y, f"rank {r}", 10)
        sheet.text(3.3, y + 0.34, f"expert {r}", 9, colour=FAINT, align="left")
        for x0, cells in ((0.6, mine[r]), (3.3, arrived[r]), (7.6, done[r])):
            for i, cell in enumerate(cells):
                sheet.cell(x0 + i * (width + 0.06), y - height / 2, width, height, cell)
    for x, title in ((2.58, "dispatch"), (6.82, "combine")):
        for src in ranks:
            for dst in ranks:
                pair = (src, dst) if title == "dispatch" else (dst, src)
                if pair[1] in ROUTER[pair[0]]:
                    start = (x + 0.08 if title == "dispatch" else x + 0.04, top - src * lane)
                    end = (x + 0.66, top - dst * lane)
                    sheet.arrow(start, end, colour=colour_of(pair[0]), width=1.3)
        sheet.text(x + 0.36, top + 0.5, title, 10, colour=FAINT)
    return sheet


PICTURES = (
    all_to_all,
    all_to_all_rounds,
    moe_dispatch,
)
