"""Chapter 00: every rank runs the same program, and knows who it is."""

import torch

from grader.exercise.declaration import Exercise, TrafficRules, Values
from grader.exercise.limits import messages

who_am_i = Exercise(
    signature="who_am_i() -> Tensor",
    summary="an int64 tensor [rank, world_size]",
    inputs=lambda draw: [draw.case("no input")],
    values=Values(lambda c: [torch.tensor([r, c.n]) for r in c.ranks]),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
    mistakes=(),
)

neighbours = Exercise(
    signature="neighbours() -> tuple[int, int]",
    summary="(left, right) on the ring; (0, 0) when the world is one rank",
    inputs=lambda draw: [draw.case("no input")],
    values=Values(lambda c: [((r - 1) % c.n, (r + 1) % c.n) for r in c.ranks]),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
    mistakes=(),
)
