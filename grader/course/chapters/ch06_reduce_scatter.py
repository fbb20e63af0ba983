"""Chapter 06: the chunks of all ranks are combined, and each rank ends with one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    PerRank,
    demo,
    magnitude,
    nbytes,
    op_name,
    reduced,
    tag_lists,
)
from grader.course.chapters import evidence
from grader.course.chapters.ch05_all_gather import COMPARED, PARTNERS, SHARED_ADVICE
from grader.course.exercise import Exercise, Growth, Mistake, TrafficRules, Values
from grader.course.limits import combined, neighbours_only, point, rounds, sent


def _inputs(draw: Draw) -> Iterator[Case]:
    for name, kind in (
        ("SUM", Kind(torch.int64, (7,))),
        ("AVG", Kind(torch.float64, (2, 3))),
        ("MIN", Kind(torch.int64, (draw.n + 1,))),
        ("MAX", Kind(torch.float32, (3, 2))),
        ("SUM", Kind(torch.float32, (1,))),
        ("AVG", Kind(torch.float32, (draw.n - 1,))),
        ("MAX", Kind(torch.int64, (draw.n,))),
        ("SUM", Kind(torch.bfloat16, (1000,))),
        ("SUM", Kind(torch.float32, (0,))),
    ):
        yield draw.case(f"{name} of {kind}", chunks=draw.chunks(kind, name), op=OPS[name])


def _on_many_ranks(draw: Draw) -> Case:
    """Draw a case with as little data as shows how the traffic grows."""
    one = Kind(torch.int64, (1,))
    if draw.n <= COMPARED:
        chunks = draw.chunks(one, "SUM")
    else:
        chunks = PerRank([list(draw.per_rank(one))] * draw.n)
    return draw.case("SUM of one number a chunk", chunks=chunks, op=OPS["SUM"])


def _contributions(c: Case, j: int) -> list[torch.Tensor]:
    """Return chunk ``j`` of every rank."""
    return [c.chunks[r][j] for r in c.ranks]


def _of(c: Case, terms: Callable[[int], list[torch.Tensor]]) -> list[torch.Tensor] | None:
    """Return each rank's reduction of the wrong terms; ``None`` for AVG."""
    if op_name(c.op) == "AVG":
        return None
    return [reduced(c.op, terms(r)) for r in c.ranks]


def _expected(c: Case) -> list[torch.Tensor]:
    return [reduced(c.op, _contributions(c, r)) for r in c.ranks]


def _magnitude(c: Case) -> list[torch.Tensor]:
    return [magnitude(c.op, _contributions(c, r)) for r in c.ranks]


def _instead(wrong: str, *asked: str) -> Callable[[Case], list[torch.Tensor] | None]:
    """Return the results if ``wrong`` were computed where one of ``asked`` is asked for."""
    return lambda c: (
        [reduced(OPS[wrong], _contributions(c, r)) for r in c.ranks]
        if op_name(c.op) in asked
        else None
    )


def _divided_twice(c: Case) -> list[torch.Tensor] | None:
    if op_name(c.op) != "AVG":
        return None
    return [t / c.n for t in _expected(c)]


def _divided_each_time(c: Case, by: int) -> list[torch.Tensor] | None:
    """Return the means if chunk r goes from rank r + 1 to rank r, divided at every stop."""
    if op_name(c.op) != "AVG":
        return None
    totals = []
    for r in c.ranks:
        total = c.chunks[(r + 1) % c.n][r]
        for k in range(2, c.n + 1):
            total = (total + c.chunks[(r + k) % c.n][r]) / by
        totals.append(total)
    return totals


def _ring(c: Case, direction: int = 1, send: int = 0, put: int = -1) -> list[torch.Tensor] | None:
    """Return a ring's results if rank r sends chunk r − s + send in step s, fills r − s + put."""
    held = [[[t] for t in c.chunks[r]] for r in c.ranks]
    for s in range(1, c.n):
        moving = [list(held[r][(r - s + send) % c.n]) for r in c.ranks]
        for r in c.ranks:
            held[r][(r - s + put) % c.n] += moving[(r - direction) % c.n]
    return _of(c, lambda r: held[r][r])


def _only_own(c: Case) -> list[torch.Tensor] | None:
    return _of(c, lambda r: [c.chunks[r][r]])


def _own_and_zeros(c: Case) -> list[torch.Tensor] | None:
    """Return the results if buffers are read too early, while they still hold zeros."""
    return _of(c, lambda r: [c.chunks[r][r], torch.zeros_like(c.chunks[r][r])])


def _doubled_distances(c: Case) -> list[torch.Tensor] | None:
    """Return the reduction of chunks from ranks at the distances 1, 2, 4, … only."""
    far = [0, *(1 << k for k in range(c.n) if 1 << k < c.n)]
    return _of(c, lambda r: [c.chunks[(r - s) % c.n][r] for s in far])


def _without_own(c: Case) -> list[torch.Tensor] | None:
    return _of(c, lambda r: [t for s, t in enumerate(_contributions(c, r)) if s != r])


def _with_zeros(c: Case) -> list[torch.Tensor] | None:
    if op_name(c.op) not in ("MIN", "MAX"):
        return None
    return _of(c, lambda r: [torch.zeros_like(c.chunks[r][r]), *_contributions(c, r)])


#: Mistakes in the reduction itself, whatever route the chunks take.
ARITHMETIC = (
    Mistake(
        "AVG is the sum divided by the number of ranks; the division is missing.",
        gives=_instead("SUM", "AVG"),
    ),
    Mistake(
        "The sum is divided twice: add up the chunks as they are, and divide by n once, at the"
        " end.",
        gives=_divided_twice,
    ),
    Mistake(
        "The division happens again and again on the way, so what came first is divided most often."
        " Let sums travel, and divide by n once, at the end.",
        gives=(lambda c: _divided_each_time(c, c.n), lambda c: _divided_each_time(c, 2)),
    ),
    Mistake(
        "Whatever op says, you sum: compare op with dist.ReduceOp.MIN and dist.ReduceOp.MAX.",
        gives=_instead("SUM", "MIN", "MAX"),
    ),
    Mistake(
        "MIN and MAX are swapped.",
        gives=(_instead("MAX", "MIN"), _instead("MIN", "MAX")),
    ),
    Mistake(
        "The result is never above 0 for MIN, or never below 0 for MAX: you begin with zeros, and"
        " often 0 is smaller, or larger, than all the numbers. Begin with a chunk:"
        " chunks[rank].clone().",
        gives=_with_zeros,
    ),
    Mistake(
        "Only AVG divides, and it is asked for on floating-point numbers alone: integers cannot be"
        " divided in place.",
        when=lambda e: e.says("can't be cast"),
    ),
    evidence.AVERAGE_ALONE,
)

MIN_MAX_LOST = Mistake(
    "SUM is right, so the chunks reach the right ranks. But MIN and MAX give your own chunks[rank]:"
    " torch.minimum(a, b) makes a new tensor, and leaves a as it was. Keep what it makes, as with"
    " torch.minimum(a, b, out=a).",
    gives=lambda c: _only_own(c) if op_name(c.op) in ("MIN", "MAX") else _expected(c),
)

NOTHING_COMBINED = Mistake(
    "That is your own chunks[rank], with nothing of the others in it. What comes has to be combined"
    " with it, after any wait(), in the tensor that you return.",
    gives=_only_own,
)

OWN_LIST = Mistake(
    "You combine your own chunks with one another. What belongs together is chunks[r] of every"
    " rank: one chunk from each list.",
    gives=lambda c: _of(c, lambda r: list(c.chunks[r])),
)

CHUNK_ZERO = Mistake(
    "Every rank ends with chunk 0, but rank r should end with chunk r.",
    gives=lambda c: _of(c, lambda r: _contributions(c, 0)),
)

ADVICE = {
    **SHARED_ADVICE,
    Diagnosis.WRONG_TYPE: "Return one tensor, shaped like one chunk: the reduction of all ranks'"
    " chunks[rank].",
    Diagnosis.WRONG_SHAPE: "Rank r returns one chunk, and not all of them.",
    Diagnosis.WRONG_DTYPE: "The result has the dtype of the chunks. Buffers from"
    " torch.empty_like(chunks[0]) keep it. (An average of integers is not asked for.)",
    Diagnosis.ALIASED: "The result must be a tensor of its own: begin with chunks[rank].clone()."
    " Note that list(chunks) copies the list and not the tensors in it.",
    Diagnosis.INPUT_CHANGED: "The chunks belong to the caller. Combine in copies: [c.clone() for c"
    " in chunks]. Note that list(chunks) copies the list and not the tensors in it, and that +="
    " writes into them.",
    Diagnosis.DTYPE_MISMATCH: "torch.empty(shape) is float32, whatever the dtype of the chunks:"
    " torch.empty_like(chunks[0]) has theirs.",
}

reduce_scatter = Exercise(
    signature="reduce_scatter(chunks: list[Tensor], op: dist.ReduceOp) -> Tensor",
    summary="the reduction over all ranks of their chunks[rank]: SUM, AVG, MIN or MAX",
    inputs=_inputs,
    values=Values(_expected, reduced=lambda c: c.n, magnitude=_magnitude),
    traffic=TrafficRules(
        limits=(point(sent("=", lambda c: (c.n - 1) * nbytes(c.chunks[0][0]))),), least=combined
    ),
    demo=lambda n: demo(n, chunks=tag_lists(n), op=OPS["SUM"]),
    mistakes=(
        *ARITHMETIC,
        Mistake(
            "Your own chunk is not in the result, but it counts like all the others.",
            gives=_without_own,
        ),
        Mistake(
            "From some ranks nothing arrives: the distance doubles, and skips them. Every other"
            " rank has a chunk for you, at each of the distances 1, 2, 3, … up to n − 1.",
            gives=_doubled_distances,
        ),
        NOTHING_COMBINED,
        MIN_MAX_LOST,
        CHUNK_ZERO,
        Mistake(
            "You end with your neighbour's chunk, but rank r should end with chunk r. What rank j"
            " needs from you is chunks[j].",
            gives=(
                lambda c: _of(c, lambda r: _contributions(c, (r + 1) % c.n)),
                lambda c: _of(c, lambda r: _contributions(c, (r - 1) % c.n)),
            ),
        ),
        OWN_LIST,
        *PARTNERS,
    ),
)


ring_reduce_scatter = Exercise(
    signature="ring_reduce_scatter(chunks: list[Tensor], op: dist.ReduceOp) -> Tensor",
    summary="the same around the ring: partial sums go from rank to rank and grow",
    inputs=_inputs,
    values=Values(_expected, reduced=lambda c: c.n, magnitude=_magnitude),
    traffic=TrafficRules(
        limits=(
            point(neighbours_only()),
            point(rounds("=", lambda c: c.n - 1)),
            sent("=", lambda c: (c.n - 1) * nbytes(c.chunks[0][0])),
        ),
        growth=Growth(_on_many_ranks, values=COMPARED),
        least=combined,
    ),
    demo=lambda n: demo(n, chunks=tag_lists(n), op=OPS["SUM"]),
    mistakes=(
        *ARITHMETIC,
        Mistake(
            "Your own chunk is not in the result. In every round, the last one too, combine what"
            " came with your own chunk of that number; replacing it is what an all-gather does.",
            gives=(_without_own, lambda c: _of(c, lambda r: [c.chunks[(r + 1) % c.n][r]])),
        ),
        Mistake(
            "Your own chunk was combined with zeros: you read the buffer too early, before wait(),"
            " or you combine another tensor than the one that you received into.",
            gives=_own_and_zeros,
            when=lambda e: e.calls("irecv", "batch_isend_irecv"),
        ),
        Mistake(
            "That is your own chunks[rank], with nothing of the others in it. Either what came was"
            " not combined with it, or your ring completes another chunk. In the last round the"
            " chunk of your own number has to come, so begin by sending chunk (rank − 1) % n.",
            gives=_only_own,
            when=lambda e: e.trace.traffic.messages > 0,
        ),
        NOTHING_COMBINED,
        MIN_MAX_LOST,
        CHUNK_ZERO,
        Mistake(
            "Your ring is one chunk off: rank r ends with chunk r + 1, complete. That ring sends"
            " chunk r first; begin one earlier, with chunk r − 1.",
            gives=lambda c: _of(c, lambda r: _contributions(c, (r + 1) % c.n)),
        ),
        Mistake(
            "Rank r ends with chunk r − 1, complete: the ring is one chunk off. Begin with chunk"
            " (rank − 1) % n.",
            gives=lambda c: _of(c, lambda r: _contributions(c, (r - 1) % c.n)),
        ),
        Mistake(
            "Two contributions only: every rank sends its chunks as they are. What travels must be"
            " a partial result, so send what you have combined so far.",
            gives=lambda c: _of(c, lambda r: [c.chunks[r][r], c.chunks[r - 1][r]]),
        ),
        Mistake(
            "The messages go to the left, but the chunks are counted as if they went to the right:"
            " send to (rank + 1) % n and receive from (rank − 1) % n.",
            gives=lambda c: _ring(c, direction=-1),
        ),
        Mistake(
            "Chunks are counted one off: you combine what comes with your chunk of another number."
            " In round s your left neighbour sends chunk (rank − 1 − s) % n, so that is the one to"
            " combine it with.",
            gives=tuple(
                partial(_ring, send=send, put=put)
                for send, put in ((-1, -1), (0, -2), (1, -1), (-1, -3), (0, 1))
            ),
        ),
        OWN_LIST,
        *PARTNERS,
    ),
)
