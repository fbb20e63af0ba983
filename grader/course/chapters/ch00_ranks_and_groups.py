"""Chapter 00: every rank runs the same program, and knows who it is."""

import torch

from grader.core.verdict import Diagnosis
from grader.course.exercise import Exercise
from grader.course.limits import messages

who_am_i = Exercise(
    signature="who_am_i() -> Tensor",
    summary="an int64 tensor [rank, world_size]",
    inputs=lambda draw: [draw.case("no input")],
    expected=lambda c: [torch.tensor([r, c.n]) for r in c.ranks],
    limits=(messages("=", lambda c: 0),),
    hints=(
        "torch.distributed knows both numbers, so no rank has to ask another. Which functions of"
        " the chapter return them?",
        "dist.get_rank() is this rank, dist.get_world_size() is how many there are. Put both into"
        " one tensor, in that order.",
        "This is the whole answer:\n"
        "    return torch.tensor([dist.get_rank(), dist.get_world_size()])",
    ),
    mistakes=(),
    advice={
        Diagnosis.WRONG_DTYPE: "torch.tensor of Python ints is int64; leave the dtype to it.",
        Diagnosis.WRONG_TYPE: "Return one tensor: torch.tensor([...]).",
        Diagnosis.WRONG_SHAPE: "One flat list of two numbers has this shape: torch.tensor([a, b]).",
        Diagnosis.TOO_MANY_MESSAGES: "No message is needed: each rank knows both numbers already.",
    },
)

neighbours = Exercise(
    signature="neighbours() -> tuple[int, int]",
    summary="(left, right) on the ring; (0, 0) when the world is one rank",
    inputs=lambda draw: [draw.case("no input")],
    expected=lambda c: [((r - 1) % c.n, (r + 1) % c.n) for r in c.ranks],
    limits=(messages("=", lambda c: 0),),
    hints=(
        "Put the ranks in a ring: which one is before rank 0, and which comes after the last?",
        "The right neighbour is rank + 1, unless that is past the end; % world_size wraps it."
        " The left one wraps in the same way: in Python, i % n lies between 0 and n − 1 even when"
        " i is negative.",
        "This is the whole answer:\n"
        "    rank, n = dist.get_rank(), dist.get_world_size()\n"
        "    return (rank - 1) % n, (rank + 1) % n",
    ),
    mistakes=(),
    advice={
        Diagnosis.WRONG_TYPE: "Return a pair of Python ints, such as (3, 1).",
        Diagnosis.WRONG_SHAPE: "Return exactly two numbers: the left neighbour, then the right"
        " one.",
        Diagnosis.TOO_MANY_MESSAGES: "No message is needed: both neighbours follow from the rank"
        " and the world size.",
    },
)
