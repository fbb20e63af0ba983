"""Chapter 00: every rank runs the same program, and knows who it is."""

import torch

from grader.course.exercise import Exercise, Mistake, TrafficRules, Values
from grader.course.limits import messages

who_am_i = Exercise(
    signature="who_am_i() -> Tensor",
    summary="an int64 tensor [rank, world_size]",
    inputs=lambda draw: [draw.case("no input")],
    values=Values(lambda c: [torch.tensor([r, c.n]) for r in c.ranks]),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
    mistakes=(
        Mistake(
            "The two numbers are the other way round: the rank comes first, then the world size.",
            gives=lambda c: [torch.tensor([c.n, r]) for r in c.ranks],
        ),
        Mistake(
            "The first number is 0 on every rank, so it is right on rank 0 only. dist.get_rank()"
            " tells each rank its own.",
            gives=lambda c: [torch.tensor([0, c.n]) for _ in c.ranks],
        ),
    ),
)

neighbours = Exercise(
    signature="neighbours() -> tuple[int, int]",
    summary="(left, right) on the ring; (0, 0) when the world is one rank",
    inputs=lambda draw: [draw.case("no input")],
    values=Values(lambda c: [((r - 1) % c.n, (r + 1) % c.n) for r in c.ranks]),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
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
            "You stop at both ends, as on a line, but the ends of a ring meet: left of rank 0 is"
            " the last rank, and right of the last rank is rank 0.",
            gives=lambda c: [(max(r - 1, 0), min(r + 1, c.n - 1)) for r in c.ranks],
        ),
    ),
)
