"""The ring all-reduce step by step, and how it goes wrong; runs in the judge alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from grader.cases import Case
from grader.compare import compare
from grader.exercise import Evidence
from grader.oracles import OPS, magnitude, op_name, reduced
from grader.verdict import Diagnosis

__all__ = [
    "Pairs",
    "all_send",
    "chain_breaks",
    "everywhere",
    "holds",
    "length",
    "mixed",
    "nothing_added",
    "pairs_exchange",
    "phase",
    "raised",
    "ring",
    "schedule",
    "steps_missing",
    "tail_left",
    "wrong_ring",
]

#: For every step the chunk that is sent and the chunk that is received.
Pairs = list[tuple[int, int]]

Merge = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_MERGE: Mapping[str, Merge] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "PRODUCT": torch.mul,
}


def phase(rank: int, n: int, offset: int) -> Pairs:
    """n − 1 steps that begin with sending chunk ``rank − 1 + offset``."""
    return [((rank - s + offset) % n, (rank - s - 1 + offset) % n) for s in range(1, n)]


def schedule(rank: int, n: int, convention: int = 0) -> Pairs:
    """Both phases; rank ends the first with chunk ``rank + convention``."""
    return phase(rank, n, convention) + phase(rank, n, convention + 1)


def ring(
    c: Case,
    *,
    first: int = 0,
    second: int = 0,
    short: tuple[int, int] = (0, 0),
    merge: Merge | None = None,
    adds: bool = False,
    back: bool = False,
    divisor: float | None = None,
) -> list[torch.Tensor] | None:
    """What a ring all-reduce gives if it goes wrong in the ways that are asked for.

    Args:
        c: has ``x`` and ``op``.
        first, second: which convention the phases follow.
        short: how many steps are missing in each; extra ones if negative.
        merge: what the first phase does with its own chunk and what comes.
        adds: whether the second phase combines as well, instead of replacing.
        back: whether the second phase goes to the left.
        divisor: of the result.

    Returns:
        What each rank holds; ``None`` if the case cannot tell.
    """
    n, dtype = c.n, c.x[0].dtype
    if n == 1 or (back and (n == 2 or c.x[0].numel() % n)):
        return None
    wide = torch.float64 if dtype.is_floating_point else dtype
    held = [list(x.to(wide).flatten().tensor_split(n)) for x in c.x]
    combine = _MERGE[op_name(c.op)]
    for steps, offset, put, left in (
        (n - 1 - short[0], first, merge or combine, 1),
        (n - 1 - short[1], second + 1, combine if adds else _replace, -1 if back else 1),
    ):
        for s in range(1, steps + 1):
            moving = [held[r][(r - s + offset) % n] for r in c.ranks]
            for r in c.ranks:
                i = (r - s - 1 + offset) % n
                held[r][i] = put(held[r][i], moving[(r - left) % n])
    if divisor is None:
        divisor = n if op_name(c.op) == "AVG" else 1
    whole = [torch.cat(chunks).reshape(x.shape) for chunks, x in zip(held, c.x, strict=True)]
    return [(t if divisor == 1 else t / divisor).to(dtype) for t in whole]


def _replace(mine: torch.Tensor, came: torch.Tensor) -> torch.Tensor:
    return came


def holds(e: Evidence, *candidates: list[torch.Tensor] | None) -> bool:
    """Whether the ranks hold one of these, and not the right values, up to rounding."""
    roundings = (e.case.n + 1) ** 2  # generous: what is not divided has larger errors
    scale = magnitude(e.case.op, e.case.x)

    def equal(wants: list[torch.Tensor] | None) -> bool:
        return (
            wants is not None
            and len(wants) == len(e.actual)
            and all(
                compare(want, got, roundings, scale) is None
                for want, got in zip(wants, e.actual, strict=True)
            )
        )

    right = [reduced(e.case.op, e.case.x)] * e.case.n
    return any(equal(wants) for wants in candidates) and not equal(right)


def wrong_ring(**wrong: Any) -> Callable[[Evidence], bool]:
    """Whether a ring of either convention that goes wrong like this gave what the ranks hold."""
    missing = sum(wrong.get("short", ()))
    return lambda e: (
        steps_missing(e) == missing
        and holds(e, *(ring(e.case, first=k, second=k, **wrong) for k in (0, 1)))
    )


def nothing_added(e: Evidence) -> bool:
    """Whether every chunk of the result is that of a single rank."""
    return wrong_ring(merge=_replace)(e)


def mixed(e: Evidence) -> bool:
    """Whether the second phase began with a chunk that was not finished."""
    n = e.case.n
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    return holds(e, *(ring(e.case, first=a, second=b) for a, b in pairs))


def steps_missing(e: Evidence) -> int:
    """How many steps fewer than a ring's 2(n − 1) the messages are enough for."""
    return int(2 * (e.case.n - 1) - e.trace.traffic.messages / e.case.n)


def length(c: Case) -> int:
    """How many elements a rank brings."""
    return int(c.x[0].numel())


def chain_breaks(e: Evidence) -> bool | None:
    """Whether rank 0 begins its second phase with another chunk than the one it has received last.

    ``None`` if the places in memory that it sends from do not tell.
    """
    n = e.case.n
    size = e.case.x[0].numel() // n
    places = [m.taken_from for m in e.trace.messages if m.source == 0]
    if not size or len(places) < n or len(set(places)) < max(2, n - 1):
        return None
    last, following = places[n - 2] // size, places[n - 1] // size
    return bool((last - following) % n != 1)


def tail_left(c: Case) -> list[torch.Tensor] | None:
    """What is held if the elements that n does not divide are left as they were."""
    whole = c.x[0].numel() // c.n * c.n
    if c.n == 1 or whole == c.x[0].numel():
        return None
    total = reduced(c.op, c.x).flatten()
    return [torch.cat([total[:whole], x.flatten()[whole:]]).reshape(x.shape) for x in c.x]


def raised(e: Evidence, *words: str) -> bool:
    """Whether somebody's exception says one of these."""
    if e.diagnosis is not Diagnosis.EXCEPTION or e.failure is None:
        return False
    return any(word in text for word in words for text in (e.failure.message, *e.failure.detail))


def pairs_exchange(e: Evidence) -> bool:
    """Whether ranks swap with partners, each with others, and it goes wrong: no ring does that."""
    if e.diagnosis not in (Diagnosis.WRONG_VALUE, Diagnosis.EXCEPTION, Diagnosis.DEADLOCK):
        return False
    n = e.case.n
    talk = {(op.rank, op.peer) for op in e.trace.sends()}
    ways = {frozenset((b - a) % n for a, b in talk if a == rank) for rank in e.case.ranks}
    return n > 2 and len(ways) > 1 and any((b, a) in talk for a, b in talk)


def all_send(e: Evidence) -> bool:
    """Whether everybody is stuck in a send."""
    waits = e.failure.waits if e.failure else ()
    return len(waits) == e.case.n and all("waits to send" in wait.text for wait in waits)


def everywhere(c: Case, op: str, *asked: str) -> list[torch.Tensor] | None:
    """The result if ``op`` were computed where one of ``asked`` was."""
    return [reduced(OPS[op], c.x)] * c.n if op_name(c.op) in asked else None
