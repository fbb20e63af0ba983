"""Chapter 00: every rank runs the same program, and knows who it is."""

import torch

from grader.exercise import Exercise, Mistake
from grader.limits import messages
from grader.verdict import Diagnosis

who_am_i = Exercise(
    signature="who_am_i() -> Tensor",
    summary="an int64 tensor [rank, world_size]",
    inputs=lambda draw: [draw.case("no input")],
    expected=lambda c: [torch.tensor([r, c.n]) for r in c.ranks],
    limits=(messages("=", lambda c: 0),),
    hints=(
        "torch.distributed knows both numbers; nobody has to be asked.",
        "dist.get_rank() is this rank, dist.get_world_size() is how many there are.",
        "return torch.tensor([dist.get_rank(), dist.get_world_size()])",
    ),
    mistakes=(
        Mistake(
            "The two numbers are the other way round: rank first, then world size.",
            gives=lambda c: [torch.tensor([c.n, r]) for r in c.ranks],
        ),
        Mistake(
            "The rank is right on rank 0 only: ask dist.get_rank() instead of writing a number.",
            gives=lambda c: [torch.tensor([0, c.n]) for _ in c.ranks],
        ),
    ),
    advice={
        Diagnosis.WRONG_DTYPE: "torch.tensor of Python ints is int64; leave the dtype to it.",
        Diagnosis.WRONG_TYPE: "Return one tensor: torch.tensor([...]).",
    },
)

neighbours = Exercise(
    signature="neighbours() -> tuple[int, int]",
    summary="(left, right) on the ring; (0, 0) when the world is one rank",
    inputs=lambda draw: [draw.case("no input")],
    expected=lambda c: [((r - 1) % c.n, (r + 1) % c.n) for r in c.ranks],
    limits=(messages("=", lambda c: 0),),
    hints=(
        "Put the ranks on a circle: who is before rank 0, and who comes after the last?",
        "The right neighbour is rank + 1, unless that is past the end; % world_size wraps it.",
        "return (rank - 1) % n, (rank + 1) % n   # Python's % is never negative",
    ),
    mistakes=(
        Mistake(
            "Left and right are swapped: left is rank − 1, right is rank + 1.",
            gives=lambda c: [((r + 1) % c.n, (r - 1) % c.n) for r in c.ranks],
        ),
        Mistake(
            "The ring is not closed: left of rank 0 is the last rank, and right of the last"
            " rank is 0. Take both modulo the world size.",
            gives=lambda c: [(r - 1, r + 1) for r in c.ranks],
        ),
        Mistake(
            "The right side wraps, the left does not: left of rank 0 is the last rank.",
            gives=lambda c: [(r - 1, (r + 1) % c.n) for r in c.ranks],
        ),
        Mistake(
            "The ends of a line stop, the ends of a ring meet: left of rank 0 is the last rank.",
            gives=lambda c: [(max(r - 1, 0), min(r + 1, c.n - 1)) for r in c.ranks],
        ),
    ),
    advice={Diagnosis.WRONG_TYPE: "Return a pair of Python ints, such as (3, 1)."},
)
