"""The ring all-reduce step by step, and how it goes wrong; runs in the judge alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.exercise import Evidence, Gives, Growth
from grader.course.oracles import OPS, op_name, reduced

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "Pairs",
    "REDUCE_SCATTER",
    "all_send",
    "chain_breaks",
    "divided_in_steps",
    "divided_twice",
    "everywhere",
    "length",
    "mixed",
    "pairs_exchange",
    "phase",
    "raised",
    "replacing",
    "ring",
    "schedule",
    "steps_missing",
    "tail_left",
    "untouched",
    "wrong_rings",
]


# The inputs of ring exercises on many simulated ranks: as little data as shows the growth. ----

#: Up to so many ranks the values are compared where every rank holds one from each:
#: n² tensors take longer to make and to look at than to send.
_COMPARED = 64

_ONE = Kind(torch.int64, (1,))


def _all_gather(draw: Draw) -> Case:
    return draw.case("one number a rank", x=draw.per_rank(_ONE))


def _reduce_scatter(draw: Draw) -> Case:
    if draw.n <= _COMPARED:
        chunks = draw.chunks(_ONE, "SUM")
    else:
        chunks = PerRank([list(draw.per_rank(_ONE))] * draw.n)
    return draw.case("SUM of one number a chunk", chunks=chunks, op=OPS["SUM"])


def _all_reduce(draw: Draw) -> Case:
    x = draw.per_rank(Kind(torch.int64, (draw.n,)), "SUM")
    return draw.case("SUM of one number a chunk", x=x, op=OPS["SUM"])


ALL_GATHER = Growth(_all_gather, values=_COMPARED)
REDUCE_SCATTER = Growth(_reduce_scatter, values=_COMPARED)
ALL_REDUCE = Growth(_all_reduce)

# Rings and their mistakes. --------------------------------------------------------

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


def wrong_rings(**wrong: Any) -> tuple[Gives, ...]:
    """What rings of either convention that go wrong like this give."""
    return tuple(partial(ring, first=k, second=k, **wrong) for k in (0, 1))


def replacing() -> tuple[Gives, ...]:
    """What rings give that never combine: every chunk of the result is that of one rank."""
    return wrong_rings(merge=_replace)


def mixed() -> tuple[Gives, ...]:
    """What rings give whose second phase begins with a chunk that is not finished."""
    pairs = [(a, b) for a in (0, 1) for b in (-2, -1, 0, 1, 2) if a != b]
    return tuple(partial(ring, first=a, second=b) for a, b in pairs)


def divided_in_steps() -> tuple[Gives, ...]:
    """What rings give for AVG that divide whenever they add."""

    def divided(c: Case, convention: int, by: int) -> list[torch.Tensor] | None:
        if op_name(c.op) != "AVG":
            return None

        def merge(mine: torch.Tensor, came: torch.Tensor) -> torch.Tensor:
            return (mine + came) / (by or c.n)

        return ring(c, first=convention, second=convention, merge=merge, divisor=1)

    return tuple(partial(divided, convention=k, by=by) for k in (0, 1) for by in (0, 2))


def divided_twice(c: Case) -> list[torch.Tensor] | None:
    """What is held if an average is divided by n twice."""
    return ring(c, divisor=c.n**2) if op_name(c.op) == "AVG" else None


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


def tail_left(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """What is held if the elements that n does not divide are left as they were.

    Where the whole of x is divided for AVG, they are, too.
    """
    whole = c.x[0].numel() // c.n * c.n
    total, kept = reduced(c.op, c.x).flatten(), untouched(c, divided)
    return [torch.cat([total[:whole], x.flatten()[whole:]]).reshape(x.shape) for x in kept]


def untouched(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """What is held if nothing arrives, and AVG perhaps divides all the same."""
    return [x / c.n if divided and op_name(c.op) == "AVG" else x for x in c.x]


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
