"""Chapter 06: the chunks of all ranks are combined, and each rank ends with one of them."""

from __future__ import annotations

from collections.abc import Iterator

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
    reduced,
    tag_lists,
)
from grader.course.chapters import evidence
from grader.course.chapters.ch05_all_gather import COMPARED, PARTNERS, SHARED_ADVICE
from grader.course.exercise import Exercise, Growth
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


def _expected(c: Case) -> list[torch.Tensor]:
    return [reduced(c.op, _contributions(c, r)) for r in c.ranks]


def _magnitude(c: Case) -> list[torch.Tensor]:
    return [magnitude(c.op, _contributions(c, r)) for r in c.ranks]


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
    expected=_expected,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=_magnitude,
    limits=(point(sent("=", lambda c: (c.n - 1) * nbytes(c.chunks[0][0]))),),
    demo=lambda n: demo(n, chunks=tag_lists(n), op=OPS["SUM"]),
    hints=(
        "You end with the chunk of your own number. Which ranks have something that you need for"
        " it, and what does rank j need from you?",
        "Send chunks[j] to each other rank j. One chunk comes from each other rank: combine it with"
        " a copy of your own chunks[rank]. AVG is SUM, divided by n once at the end.",
        "This is the whole answer:\n"
        "    rank, n, R = dist.get_rank(), dist.get_world_size(), dist.ReduceOp\n"
        "    total = chunks[rank].clone()\n"
        "    buffer = torch.empty_like(total)\n"
        "    for k in range(1, n):\n"
        "        to = (rank + k) % n\n"
        "        request = dist.isend(chunks[to], to)\n"
        "        dist.recv(buffer, (rank - k) % n)\n"
        "        request.wait()\n"
        "        if op == R.MIN:\n"
        "            torch.minimum(total, buffer, out=total)\n"
        "        elif op == R.MAX:\n"
        "            torch.maximum(total, buffer, out=total)\n"
        "        else:\n"
        "            total += buffer\n"
        "    return total / n if op == R.AVG else total",
    ),
    mistakes=(evidence.AVERAGE_ALONE, *PARTNERS),
    advice={
        **ADVICE,
        Diagnosis.WRONG_VALUE: "Take as many ranks as here, and chunks of one number. Rank r needs"
        " chunks[r] of each rank, once. Which messages bring them, and is what they hold that"
        " chunk?",
        Diagnosis.DEADLOCK: "Every send needs its receive on the other side, and every receive its"
        " send: if you send to (rank + k) % n, what you receive comes from (rank − k) % n.",
        Diagnosis.TOO_MANY_BYTES: "From your list, rank j needs chunks[j] alone: no rank has to see"
        " whole lists. Each rank sends n − 1 chunks, one to each of the others.",
        Diagnosis.TOO_FEW_BYTES: "Each rank has a chunk for each of the others, n − 1 in all, and"
        " here no rank sends that much.",
    },
)


ring_reduce_scatter = Exercise(
    signature="ring_reduce_scatter(chunks: list[Tensor], op: dist.ReduceOp) -> Tensor",
    summary="the same around the ring: partial sums go from rank to rank and grow",
    inputs=_inputs,
    expected=_expected,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=_magnitude,
    limits=(
        point(neighbours_only()),
        point(rounds("=", lambda c: c.n - 1)),
        sent("=", lambda c: (c.n - 1) * nbytes(c.chunks[0][0])),
    ),
    growth=Growth(_on_many_ranks, values=COMPARED),
    demo=lambda n: demo(n, chunks=tag_lists(n), op=OPS["SUM"]),
    hints=(
        "Chunk r has to end on rank r, after it has been to every rank on its way to the right. So"
        " where does its journey begin, and which chunk do you send first?",
        "In each of n − 1 rounds every rank sends a partial result to the right, and combines what"
        " comes from the left with its own chunk of that number: that is what it sends next. For 4"
        " ranks, write down which chunk rank 0 sends in rounds 1, 2 and 3, so that chunk 0 comes"
        " last. How does the number change from round to round?",
        "Chunk r begins on rank r + 1. In round s = 1 … n − 1 you send what you have so far of"
        " chunk (rank − s) % n to the right, and chunk (rank − s − 1) % n comes from the left. AVG"
        " divides once, at the very end.",
        "This is the whole answer:\n"
        "    rank, n, R = dist.get_rank(), dist.get_world_size(), dist.ReduceOp\n"
        "    left, right = (rank - 1) % n, (rank + 1) % n\n"
        "    parts = [chunk.clone() for chunk in chunks]\n"
        "    buffer = torch.empty_like(parts[0])\n"
        "    for s in range(1, n):\n"
        "        request = dist.isend(parts[(rank - s) % n], right)\n"
        "        dist.recv(buffer, left)\n"
        "        request.wait()\n"
        "        mine = parts[(rank - s - 1) % n]\n"
        "        if op == R.MIN:\n"
        "            torch.minimum(mine, buffer, out=mine)\n"
        "        elif op == R.MAX:\n"
        "            torch.maximum(mine, buffer, out=mine)\n"
        "        else:\n"
        "            mine += buffer\n"
        "    return parts[rank] / n if op == R.AVG else parts[rank]",
    ),
    mistakes=(evidence.AVERAGE_ALONE, *PARTNERS),
    advice={
        **ADVICE,
        Diagnosis.WRONG_VALUE: "Take 3 ranks and chunks of one number, and write down which chunk"
        " each rank sends in each round, and which comes: in round s you send chunk (rank − s) % n,"
        " and chunk (rank − s − 1) % n comes.",
        Diagnosis.DEADLOCK: "A ring sends to one side and receives from the other: send to the"
        " right, receive from the left. And start the send with isend before you receive.",
        Diagnosis.NOT_NEIGHBOUR: "On the ring you send only to (rank + 1) % n: a partial result"
        " passes through every rank.",
        Diagnosis.TOO_MANY_ROUNDS: "In each of the n − 1 steps all ranks send at the same time, one"
        " chunk each. If some receive before they send, a step takes two rounds: start with isend,"
        " then receive, then wait. And all chunks travel at once, not one after the other.",
        Diagnosis.TOO_FEW_ROUNDS: "In each of the n − 1 rounds every rank sends one chunk, even an"
        " empty one.",
        Diagnosis.TOO_MANY_BYTES: "In each of the n − 1 rounds every rank sends one chunk, the"
        " partial result so far. No rank has to collect whole lists.",
        Diagnosis.TOO_FEW_BYTES: "In each of the n − 1 rounds every rank sends one whole chunk.",
    },
)
