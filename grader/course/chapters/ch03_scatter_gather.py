"""Chapter 03: one rank hands out pieces, and collects them again."""

from collections.abc import Iterator
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, PerRank, demo, kinds, nbytes, tag_lists, tags
from grader.course.exercise import Evidence, Exercise, Mistake
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
    result="out",
    expected=lambda c: c.chunks[c.src],
    least=moved,
    limits=(
        messages("=", lambda c: c.n - 1),
        total_bytes("=", lambda c: (c.n - 1) * nbytes(c.out[0])),
    ),
    demo=lambda n: demo(
        n,
        out=PerRank(torch.zeros(1, dtype=torch.float64) for _ in range(n)),
        chunks=PerRank([tag_lists(n)[0], *[None] * (n - 1)]),
        src=0,
    ),
    hints=(
        "Which chunk does src keep, and can it send to itself?",
        "src sends chunks[dst] to every other rank and copies its own chunk into out. The others"
        " receive into out; their chunks is None.",
        "This is the whole answer:\n"
        "    if dist.get_rank() == src:\n"
        "        for dst in range(dist.get_world_size()):\n"
        "            if dst == src:\n"
        "                out.copy_(chunks[src])\n"
        "            else:\n"
        "                dist.send(chunks[dst], dst)\n"
        "    else:\n"
        "        dist.recv(out, src)",
    ),
    mistakes=(
        Mistake(
            "Only src has chunks, so every other rank receives from src. A rank here waits for"
            " another one, which has nothing to send.",
            when=_asks_another,
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "scatter works in place, on out, and returns nothing.",
        Diagnosis.INPUT_CHANGED: "src's chunks belong to the caller: read them, do not write.",
        Diagnosis.TOO_MANY_BYTES: "Each rank needs one chunk: send chunks[dst] alone, not all of"
        " them.",
        Diagnosis.DEADLOCK: "Every send needs its receive: does each of the other ranks receive"
        " from src, and does src leave itself out?",
        Diagnosis.UNWAITED_REQUEST: "isend returns a request: keep them in a list and call wait()"
        " on each before you return.",
    },
)


def _collected(c: Case) -> list[Any]:
    return [list(c.x) if r == c.dst else None for r in c.ranks]


def _in_another_order(e: Evidence) -> bool:
    """Return whether dst holds the right pieces in the wrong places."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    held = e.actual[e.case.dst]
    return len(held) == e.case.n and all(
        any(torch.equal(x, entry) for entry in held) for x in e.case.x
    )


gather = Exercise(
    signature="gather(x: Tensor, dst: int) -> list[Tensor] | None",
    summary="the list of all x in rank order on dst, None elsewhere",
    inputs=lambda draw: (
        draw.case(f"{kind} to rank {dst}", x=draw.per_rank(kind), dst=dst)
        for kind, dst in draw.with_roots(kinds(draw.n))
    ),
    expected=_collected,
    least=moved,
    limits=(
        messages("=", lambda c: c.n - 1),
        total_bytes("=", lambda c: (c.n - 1) * nbytes(c.x[0])),
    ),
    demo=lambda n: demo(n, x=tags(n, 1), dst=0),
    hints=(
        "It is a scatter with the arrows turned round. What does dst do with its own x?",
        "dst makes a list with one place per rank, receives into all but one of them, and puts a"
        " copy of its own x into that one. The others send and return None.",
        "This is the whole answer:\n"
        "    if dist.get_rank() != dst:\n"
        "        dist.send(x, dst)\n"
        "        return None\n"
        "    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]\n"
        "    parts[dst].copy_(x)\n"
        "    for src, part in enumerate(parts):\n"
        "        if src != dst:\n"
        "            dist.recv(part, src)\n"
        "    return parts",
    ),
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
    advice={
        Diagnosis.WRONG_TYPE: "dst returns a list of n tensors, every other rank None.",
        Diagnosis.ALIASED: "dst's own entry must be a copy: x.clone().",
        Diagnosis.DEADLOCK: "Every send needs its receive: does dst receive from each of the other"
        " ranks, and only from them?",
        Diagnosis.UNWAITED_REQUEST: "irecv and isend return requests: wait for each of them before"
        " you return.",
    },
)
