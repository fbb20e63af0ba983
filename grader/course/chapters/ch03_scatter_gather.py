"""Chapter 03: one rank hands out pieces, and collects them again."""

from collections.abc import Iterator
from typing import Any

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, PerRank, demo, kinds, nbytes, tag_lists, tags
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, moved, total_bytes
from headcount.core.verdict import Diagnosis


def _asks_another(e: Evidence) -> bool:
    """Return whether a rank waits to receive from a rank that is not the source."""
    waits = e.failure.waits if e.failure else ()
    return any(wait.call == "recv" and e.case.src not in wait.peers for wait in waits)


def _hand_out(draw: Draw) -> Iterator[Case]:
    for kind, src in draw.with_roots(kinds(draw.n)):
        chunks: PerRank = PerRank([None] * draw.n)
        chunks[src] = list(draw.per_rank(kind))
        yield draw.case(f"{kind} from rank {src}", out=draw.per_rank(kind), chunks=chunks, src=src)


scatter = Exercise(
    signature="scatter(out: Tensor, chunks: list[Tensor] | None, src: int) -> None",
    summary="in place; out becomes chunks[rank] of src",
    inputs=_hand_out,
    values=Values(lambda c: c.chunks[c.src], result="out"),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n - 1),
            total_bytes("=", lambda c: (c.n - 1) * nbytes(c.out[0])),
        ),
        least=moved,
    ),
    demo=lambda n: demo(
        n,
        out=PerRank(torch.zeros(1, dtype=torch.float64) for _ in range(n)),
        chunks=PerRank([tag_lists(n)[0], *[None] * (n - 1)]),
        src=0,
    ),
    mistakes=(
        Mistake(
            "Only src has chunks, so every other rank receives from src. A rank here waits for"
            " another one, which has nothing to send.",
            when=_asks_another,
        ),
    ),
)


def _collected(c: Case) -> list[Any]:
    return [list(c.x) if r == c.dst else None for r in c.ranks]


def _in_another_order(e: Evidence) -> bool:
    """Return whether dst holds the right pieces in the wrong places."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    held = e.actual[e.case.dst]
    return len(held) == e.case.n and all(
        any(evidence.same(x, entry) for entry in held) for x in e.case.x
    )


gather = Exercise(
    signature="gather(x: Tensor, dst: int) -> list[Tensor] | None",
    summary="the list of all x in rank order on dst, None elsewhere",
    inputs=lambda draw: (
        draw.case(f"{kind} to rank {dst}", x=draw.per_rank(kind), dst=dst)
        for kind, dst in draw.with_roots(kinds(draw.n))
    ),
    values=Values(_collected),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n - 1),
            total_bytes("=", lambda c: (c.n - 1) * nbytes(c.x[0])),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), dst=0),
    mistakes=(
        Mistake(
            "The list is in the order of arrival. A receive from any rank returns the rank that the"
            " message came from: put the tensor in that place, or receive from a named rank.",
            when=lambda e: e.wildcards and _in_another_order(e),
        ),
        Mistake(
            "Every rank returns a list. Only dst should: the others return None.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and e.case.n > 1
                and all(isinstance(held, (list, tuple)) for held in e.actual)
            ),
        ),
    ),
)
