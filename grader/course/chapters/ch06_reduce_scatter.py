"""Chapter 06: the chunks of all ranks are combined, and each rank ends with one of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from grader.course.chapters import evidence
from grader.course.chapters.ch05_all_gather import COMPARED, PARTNERS
from grader.exercise.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    PerRank,
    demo,
    magnitude,
    nbytes,
    reduced,
    tag_lists,
)
from grader.exercise.declaration import Exercise, Growth, TrafficRules, Values
from grader.exercise.limits import combined, neighbours_only, point, rounds, sent


def _inputs(draw: Draw) -> Iterator[Case]:
    for name, kind in (
        ("SUM", Kind(torch.int64, (7,))),
        ("AVG", Kind(torch.float64, (2, 3))),
        ("MIN", Kind(torch.int64, (draw.n + 1,))),
        ("MAX", Kind(torch.float32, (3, 2))),
        ("SUM", Kind(torch.int64, (1,))),
        ("AVG", Kind(torch.float32, (draw.n - 1,))),
        ("MAX", Kind(torch.int64, (draw.n,))),
        ("SUM", Kind(torch.bfloat16, (1000,), special=True)),
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


def _expected(c: Case) -> list[torch.Tensor]:
    return [reduced(c.op, _contributions(c, r)) for r in c.ranks]


def _magnitude(c: Case) -> list[torch.Tensor]:
    return [magnitude(c.op, _contributions(c, r)) for r in c.ranks]


reduce_scatter = Exercise(
    signature="reduce_scatter(chunks: list[Tensor], op: dist.ReduceOp) -> Tensor",
    summary="the reduction over all ranks of their chunks[rank]: SUM, AVG, MIN or MAX",
    inputs=_inputs,
    values=Values(_expected, reduced=lambda c: c.n, magnitude=_magnitude),
    traffic=TrafficRules(
        limits=(point(sent("=", lambda c: (c.n - 1) * nbytes(c.chunks[0][0]))),), least=combined
    ),
    demo=lambda n: demo(n, chunks=tag_lists(n), op=OPS["SUM"]),
    mistakes=(evidence.AVERAGE_ALONE, *PARTNERS),
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
    mistakes=(evidence.AVERAGE_ALONE, *PARTNERS),
)
