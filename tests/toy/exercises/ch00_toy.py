"""Chapter 00 of the toy course."""

import torch

from grader.exercise.cases import Kind
from grader.exercise.declaration import Exercise, Mistake, TrafficRules, Values
from grader.exercise.help import Help
from grader.exercise.limits import messages

KIND = Kind(torch.float32, (3,))

twice = Exercise(
    signature="twice(x: Tensor) -> Tensor",
    summary="x doubled",
    inputs=lambda draw: [draw.case("three numbers", x=draw.per_rank(KIND))],
    values=Values(lambda c: [2 * x for x in c.x]),
    world_sizes=(1, 2),
    traffic=TrafficRules(limits=(messages("=", lambda c: 0),)),
    help=Help(hints=("What is x + x?", "return 2 * x")),
    mistakes=(
        Mistake(
            "That is x squared.",
            when=lambda e: all(map(torch.equal, e.actual, (x * x for x in e.case.x))),
        ),
    ),
)

pass_on = Exercise(
    signature="pass_on(x: Tensor) -> None",
    summary="in place; everyone ends with rank 0's x",
    inputs=lambda draw: [draw.case("three numbers", x=draw.per_rank(KIND))],
    values=Values(lambda c: [c.x[0]] * c.n, result="x"),
    world_sizes=(1, 2, 3),
    help=Help(hints=("Who has it?",)),
    points=2.0,
)
