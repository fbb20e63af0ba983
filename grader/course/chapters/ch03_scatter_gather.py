"""Chapter 03: one rank hands out pieces, and collects them again."""

from collections.abc import Iterator
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, PerRank, demo, kinds, nbytes, tag_lists, tags
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import messages, moved, total_bytes


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
            "src does not have its own chunk: copy it with out.copy_(chunks[src]). A line"
            " out = ... only gives the name out to another tensor.",
            gives=lambda c: [c.out[r] if r == c.src else c.chunks[c.src][r] for r in c.ranks],
            when=lambda e: evidence.rebinds(e, "out"),
        ),
        Mistake(
            "src does not have its own chunk: copy it with out.copy_(chunks[src]).",
            gives=lambda c: [c.out[r] if r == c.src else c.chunks[c.src][r] for r in c.ranks],
            when=lambda e: not evidence.rebinds(e, "out"),
        ),
        Mistake(
            "The others have their chunks, but src copied chunks[0] into out: its own is"
            " chunks[src].",
            gives=lambda c: [c.chunks[c.src][0 if r == c.src else r] for r in c.ranks],
        ),
        Mistake(
            "Every rank got the same chunk, number 0: rank r needs chunks[r].",
            gives=lambda c: [c.chunks[c.src][0]] * c.n,
        ),
        Mistake(
            "Every rank got src's own chunk: send chunks[dst] and not chunks[src].",
            gives=lambda c: [c.chunks[c.src][c.src]] * c.n,
        ),
        Mistake(
            "The chunks are handed out in the order of sending, counted from src; chunk r belongs"
            " to rank r.",
            gives=lambda c: [c.chunks[c.src][(r - c.src) % c.n] for r in c.ranks],
        ),
        Mistake(
            "out is as it was on every rank: receive into out itself.",
            gives=lambda c: list(c.out),
        ),
        Mistake(
            "A rank cannot send to itself or receive from itself: torch refuses both. src copies"
            " its own chunk into out.",
            when=evidence.to_itself,
        ),
        Mistake(
            "chunks is None on every rank but src: only src may look inside.",
            when=lambda e: (
                evidence.used_none(e)
                and e.failure is not None
                and e.failure.rank not in (None, e.case.src)
            ),
        ),
        Mistake(
            "Only src has chunks, so every other rank receives from src. A rank here waits for"
            " another one, which has nothing to send.",
            when=_asks_another,
        ),
    ),
)


def _collected(c: Case) -> list[Any]:
    return [list(c.x) if r == c.dst else None for r in c.ranks]


def _on_dst(c: Case, entries: list[torch.Tensor]) -> list[Any]:
    return [entries if r == c.dst else None for r in c.ranks]


def _in_another_order(e: Evidence) -> bool:
    """Return whether dst holds the right pieces in the wrong places."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    held = e.actual[e.case.dst]
    return len(held) == e.case.n and all(
        any(torch.equal(x, entry) for entry in held) for x in e.case.x
    )


def _all_alike(e: Evidence) -> bool:
    """Return whether all entries that dst received are the same; its own may be a copy of its x."""
    held = e.actual[e.case.dst]
    if len(held) != e.case.n:
        return False
    alike = [t for r, t in enumerate(held) if r != e.case.dst] if e.case.n > 2 else held
    return all(torch.equal(entry, alike[0]) for entry in alike)


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
            "dst's own x comes first, and the others follow: entry r belongs to rank r.",
            gives=lambda c: _on_dst(c, [c.x[c.dst], *(c.x[r] for r in c.ranks if r != c.dst)]),
        ),
        Mistake(
            "dst's own x comes last: entry r belongs to rank r.",
            gives=lambda c: _on_dst(c, [*(c.x[r] for r in c.ranks if r != c.dst), c.x[c.dst]]),
        ),
        Mistake(
            "Every entry of the list is dst's own x: what comes from rank r belongs in entry r.",
            gives=lambda c: _on_dst(c, [c.x[c.dst]] * c.n),
            when=lambda e: not e.written(r"\]\s*\*"),
        ),
        Mistake(
            "What came from different ranks holds the same numbers. Are these entries one and the"
            " same tensor, filled again and again? Make a new one for each rank: [buffer] * n is"
            " one tensor n times, and so is a buffer that is made once, before the loop.",
            when=evidence.always(_all_alike),
        ),
        Mistake(
            "dst's own x is missing from the list.",
            gives=lambda c: _on_dst(c, [c.x[r] for r in c.ranks if r != c.dst]),
        ),
        Mistake(
            "The list arrives on rank 0. It belongs to dst, which is not always rank 0.",
            when=lambda e: e.actual[e.case.dst] is None and isinstance(e.actual[0], (list, tuple)),
        ),
        Mistake(
            "Every rank returns a list. Only dst should: the others return None.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and any(
                    isinstance(value, (list, tuple))
                    for r, value in enumerate(e.actual)
                    if r != e.case.dst
                )
            ),
        ),
    ),
)
