"""Chapter 25: pipeline parallelism, where every rank has some of the layers."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import held, point, virtual_seconds
from grader.instruments import HeldStorages
from grader.instruments.marks import memory_mark
from headcount.core.verdict import Diagnosis

#: The passes of a stage, in order: ``("forward", 3)`` is the forward pass of micro-batch 3.
Order = list[tuple[str, int]]

FORWARD, BACKWARD = "forward", "backward"


# Orders. ----------------------------------------------------------------------------


def gpipe(micro_batches: int, down: bool = False) -> Order:
    """Return GPipe's order, with the backward passes from the first micro-batch on, or down."""
    numbers = list(range(micro_batches))
    back = numbers[::-1] if down else numbers
    return [(FORWARD, i) for i in numbers] + [(BACKWARD, i) for i in back]


def alternating(warm_up: int, micro_batches: int) -> Order:
    """Return some forward passes, then one of each in turn, then the backward passes left."""
    warm_up = min(max(warm_up, 0), micro_batches)
    order = [(FORWARD, i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [(FORWARD, i), (BACKWARD, i - warm_up)]
    return order + [(BACKWARD, i) for i in range(micro_batches - warm_up, micro_batches)]


def one_f_one_b(stage: int, stages: int, micro_batches: int) -> Order:
    """Return the order of 1F1B."""
    return alternating(stages - stage - 1, micro_batches)


def in_turn(micro_batches: int) -> Order:
    """Return the order in which each micro-batch is finished before the next one begins."""
    return alternating(0, micro_batches)


def most_in_flight(order: Sequence[Sequence[Any]]) -> int:
    """Return the most micro-batches that are between their forward and their backward pass."""
    most = now = 0
    for what, _ in order:
        now += 1 if what == FORWARD else -1
        most = max(most, now)
    return most


def schedule_seconds(orders: Sequence[Order], forward: float, backward: float) -> float:
    """Return when the last stage is done, if messages take no time.

    A pass begins when its stage is free and the pass that it depends on has ended.

    Raises:
        ValueError: the orders of the stages wait for each other.
    """
    done: dict[tuple[int, str, int], float] = {}
    free, places = [0.0] * len(orders), [0] * len(orders)
    left = sum(map(len, orders))
    while left:
        before = left
        for stage, order in enumerate(orders):
            while places[stage] < len(order):
                what, i = order[places[stage]]
                source = stage - 1 if what == FORWARD else stage + 1
                needed = (source, what, i)
                if 0 <= source < len(orders) and needed not in done:
                    break
                start = max(free[stage], done.get(needed, 0.0))
                free[stage] = done[stage, what, i] = start + (
                    forward if what == FORWARD else backward
                )
                places[stage] += 1
                left -= 1
        if left == before:
            raise ValueError("the orders of the stages wait for each other")
    return max(free)


#: Stage, stages and micro-batches of the exercises on orders; the first are small, to be read.
_PIPELINES = (
    (0, 2, 3), (1, 2, 3), (0, 4, 6), (1, 4, 6), (2, 4, 6), (3, 4, 6), (0, 1, 2), (0, 4, 2),
    (2, 4, 2), (0, 3, 1), (1, 8, 8), (5, 8, 20), (2, 3, 0),
)  # fmt: skip


def _pipelines(draw: Draw) -> Iterator[Case]:
    for stage, stages, m in _PIPELINES:
        yield draw.case(
            f"stage {stage} of {stages}, {m} micro-batch{'es' * (m != 1)}",
            stage=stage,
            stages=stages,
            micro_batches=m,
        )


gpipe_order = Exercise(
    signature="gpipe_order(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]",
    summary="the passes of a stage in GPipe's order",
    inputs=_pipelines,
    world_sizes=(1,),
    values=Values(
        lambda c: [gpipe(c.micro_batches)], also=lambda c: [[gpipe(c.micro_batches, down=True)]]
    ),
)


_IN_FLIGHT = "largest number of micro-batches in flight"


def _facts(c: Case, order: Any) -> Any:
    """Return the order, or what it asks of memory."""
    if c.look == "order":
        return order
    passes = {(what, i) for what in (FORWARD, BACKWARD) for i in range(c.micro_batches)}
    try:
        places = {(what, i): place for place, (what, i) in enumerate(order)}
        complete = len(order) == len(passes) and set(places) == passes
    except (TypeError, ValueError):
        complete = False
    # an order that leaves passes out would need no memory
    if not complete or any(places[FORWARD, i] > places[BACKWARD, i] for _, i in passes):
        return {}
    return {_IN_FLIGHT: most_in_flight(order)}


def _looks(draw: Draw) -> Iterator[Case]:
    for look, words in (("order", ""), ("flight", ", in flight")):
        for case in _pipelines(draw):
            yield replace(case, name=case.name + words, secrets={"look": look})


def _right_look(c: Case) -> list[Any]:
    order = one_f_one_b(c.stage, c.stages, c.micro_batches)
    if c.look == "order":
        return [order]
    return [{_IN_FLIGHT: most_in_flight(order)}]


def _holds_too_many(one: JudgedCase) -> bool:
    """Return whether an order is complete, and needs more memory than it should."""
    is_wrong = one.case.look == "flight" and one.diagnosis is Diagnosis.WRONG_VALUE
    return is_wrong and bool(one.actual[0])


one_f_one_b_order = Exercise(
    signature=(
        "one_f_one_b_order(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]"
    ),
    summary="the passes of a stage in the order of 1F1B",
    inputs=_looks,
    world_sizes=(1,),
    values=Values(_right_look, facts=_facts),
    point=_holds_too_many,
)


# The bubble. ------------------------------------------------------------------------


def bubble(stages: int, micro_batches: int) -> float:
    """Return the idle share of a stage's time."""
    return (stages - 1) / (micro_batches + stages - 1)


def _bubbles(draw: Draw) -> Iterator[Case]:
    for stages, m in ((4, 6), (4, 1), (1, 5), (2, 2), (8, 8), (8, 64), (3, 7), (16, 5), (64, 1000)):
        yield draw.case(
            f"{stages} stage{'s' * (stages > 1)}, {m} micro-batch{'es' * (m > 1)}",
            stages=stages,
            micro_batches=m,
        )


pipeline_bubble = Exercise(
    signature="pipeline_bubble(stages: int, micro_batches: int) -> float",
    summary="the idle share of a stage's time, with forward and backward passes alike",
    inputs=_bubbles,
    world_sizes=(1,),
    values=Values(lambda c: [bubble(c.stages, c.micro_batches)], relative=1e-12),
    mistakes=(
        Mistake(
            "stages may be 1: then stages − 1 is 0, and nothing can be divided by it.",
            when=lambda e: e.raised("ZeroDivisionError") and e.case.stages == 1,
        ),
    ),
)


# run_pipeline: the inputs. ------------------------------------------------------------

#: Width of the tensors between stages, and of what a stage keeps inside for each of these numbers.
_WIDTH, _INSIDE = 4, 16

#: Different tokens.
_TOKENS = 5


@dataclass(frozen=True)
class _Pipeline:
    """A case: the orders of all stages, and what the micro-batches are.

    Attributes:
        name: the name of the case.
        orders: by stage.
        dtype: of the weights.
        rows: the shape of a micro-batch without its last dimension.
        tokens: whether the first stage takes numbers of tokens.
        seconds: virtual seconds of a forward and of a backward pass; real ranks if there are none.
    """

    name: str
    orders: list[Order]
    dtype: torch.dtype = torch.float32
    rows: tuple[int, ...] = (2,)
    tokens: bool = False
    seconds: tuple[float, float] = (0.0, 0.0)


def _settings(n: int) -> Iterator[_Pipeline]:
    """Yield the cases; the plainest come first."""

    def same(order: Order) -> list[Order]:
        return [order] * n

    def alternate(m: int) -> list[Order]:
        return [one_f_one_b(stage, n, m) for stage in range(n)]

    yield _Pipeline("GPipe, 3 micro-batches", same(gpipe(3)))
    yield _Pipeline("1F1B, 4 micro-batches", alternate(4))
    yield _Pipeline("one micro-batch", same(gpipe(1)), dtype=torch.float64)
    yield _Pipeline("GPipe, backward from the last", same(gpipe(4, down=True)))
    # many: what outlives its backward pass adds up on the last stage
    yield _Pipeline("1F1B, 10 micro-batches", alternate(10))
    yield _Pipeline("1F1B, float64, three dimensions", alternate(3), torch.float64, (2, 3))
    yield _Pipeline("1F1B, numbers of tokens", alternate(5), tokens=True)
    # all micro-batches twice over: a second half begins when the first is done
    halves = gpipe(2) + [(what, i + 2) for what, i in gpipe(3, down=True)]
    yield _Pipeline("GPipe in two parts", same(halves))
    yield _Pipeline("1F1B, timed", alternate(min(n + 2, 6)), seconds=(1.0, 2.0))
    yield _Pipeline("one micro-batch after the other, timed", same(in_turn(2)), seconds=(1.0, 2.0))


def _drawn(draw: Draw, one: _Pipeline) -> Case:
    m = sum(what == FORWARD for what, _ in one.orders[0])
    shape, inside = (*one.rows, _WIDTH), _WIDTH * _INSIDE
    weights = [
        [
            draw.tensor(Kind(one.dtype, (_WIDTH, inside))) / 2,
            draw.tensor(Kind(one.dtype, (inside, _WIDTH))) / 16,
        ]
        for _ in draw.ranks
    ]
    if one.tokens:
        weights[0].append(draw.tensor(Kind(one.dtype, (_TOKENS, _WIDTH))))
    kind = Kind(torch.int64, one.rows) if one.tokens else Kind(one.dtype, shape)
    inputs = [draw.tensor(kind) for _ in range(m)]
    if one.tokens:
        inputs = [tensor % _TOKENS for tensor in inputs]
    targets = [draw.tensor(Kind(one.dtype, shape)) for _ in range(m)]
    item, message = one.dtype.itemsize, math.prod(shape)
    case = draw.case(
        one.name,
        weights=PerRank(weights),
        order=PerRank(one.orders),
        inputs=PerRank(inputs if r == 0 else None for r in draw.ranks),
        targets=PerRank(targets if r == draw.n - 1 else None for r in draw.ranks),
        shape=list(shape),
        seconds=list(one.seconds),
        most=PerRank(_allowed(most_in_flight(order), message) * item for order in one.orders),
    )
    timed = any(one.seconds)
    return replace(case, network=(0.0, 0.0) if timed else None)


def inputs(draw: Draw) -> Iterator[Case]:
    """Draw the weights of all stages, and their micro-batches."""
    for one in _settings(draw.n):
        yield _drawn(draw, one)


def _allowed(in_flight: int, message: int) -> int:
    """Return how many elements a rank may hold, in micro-batches of ``message`` elements.

    Of each one that is in flight, these are its input, its output, what the stage keeps inside,
    and one tensor more, such as a copy that is being sent.  Six tensors beside these may be on
    their way in or out, or be left in a variable.  Gradients of parameters do not count.
    """
    return in_flight * (_INSIDE + 3) * message + 6 * message


# The call in a rank. ----------------------------------------------------------------


class _Activations(HeldStorages):  # type: ignore[no-untyped-call]
    """Held storages without those of one more gradient of each parameter.

    What ``autograd.grad`` has returned for a pass stays in a variable until the next one, and has
    been added to ``p.grad`` meanwhile.  No activation has as many bytes as a parameter.
    """

    def __init__(
        self, own: Callable[[], list[torch.Tensor]], parameters: Sequence[torch.Tensor]
    ) -> None:
        super().__init__(own)
        self._sizes = [p.nbytes for p in parameters]

    def counted_storages(self) -> list[tuple[int, str]]:
        found, sizes = [], list(self._sizes)
        for nbytes, text in super().counted_storages():
            if nbytes in sizes:
                sizes.remove(nbytes)
            else:
                found.append((nbytes, text))
        return found


class _Pass(torch.autograd.Function):
    """The identity, which calls a function when the backward pass of a stage begins."""

    @staticmethod
    def forward(ctx: Any, y: torch.Tensor, begins: Any) -> torch.Tensor:
        ctx.begins = begins
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.begins()
        return gradient, None


class _Stage(nn.Module):
    """Two linear maps with a tanh between, added to the input; an embedding first for tokens.

    Without the sum, errors of rounding would grow from stage to stage.

    Attributes:
        passes: what has begun, in order: the kind, and the number of its forward pass.
    """

    def __init__(self, weights: Any, seconds: Any, note: Any, look: Any) -> None:
        super().__init__()
        self.w_in, self.w_out = (nn.Parameter(w.clone()) for w in weights[:2])
        if len(weights) > 2:
            self.embedding = nn.Parameter(weights[2].clone())
        self._seconds, self._note, self._look = seconds, note, look
        self.passes: list[tuple[str, int]] = []

    def _begin(self, what: str, number: int) -> None:
        """Tell of a pass, and take its time."""
        self.passes.append((what, number))
        self._note(what)
        seconds = self._seconds[what == "backward"]
        if seconds:
            time.sleep(seconds)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number = sum(what == "forward" for what, _ in self.passes)
        self._begin("forward", number)
        if hasattr(self, "embedding"):
            x = nn.functional.embedding(x, self.embedding)
        y = x + torch.tanh(x @ self.w_in) @ self.w_out
        begins = partial(self._begin, "backward", number)
        out: torch.Tensor = _Pass.apply(y, begins)  # type: ignore
        self._look()
        return out


#: A loss in which output and target cannot change places.  It is defined for targets outside of
#: 0 to 1 as well, and autograd saves nothing for it but its two arguments.
LOSS = nn.functional.binary_cross_entropy_with_logits


def train_once(
    answer: Callable[..., Any],
    weights: list[torch.Tensor],
    order: list[Any],
    inputs: list[torch.Tensor] | None,
    targets: list[torch.Tensor] | None,
    shape: list[int],
    seconds: list[float],
    most: int,
) -> dict[str, Any]:
    """Let the answer run the stage; return the loss, the gradients, and what went backward when.

    On real ranks the bytes of activations are marked that are held after a forward pass and are
    more than ``most``; of the first such pass only, since each would be waited for.
    """
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    passes, over = 0, False

    def own() -> list[torch.Tensor]:
        kept = [t for p in stage.parameters() for t in (p, p.grad) if t is not None]
        return kept + (inputs or []) + (targets or [])

    def look() -> None:
        nonlocal passes, over
        passes += 1
        if storages is None or over:
            return
        storages.settle(most)
        excess = storages.nbytes - most
        over = excess > 0
        if over:
            note(memory_mark(excess, f"holds, after forward pass number {passes}", str(storages)))

    # simulated ranks share a process, where no rank's memory can be told from another's
    simulated = not hasattr(dist.group.WORLD, "pause")
    storages = None if simulated or any(seconds) else _Activations(own, weights)
    stage = _Stage(weights, seconds, note, look)
    given = [(what, i) for what, i in order]
    call = (stage, given, inputs, targets, LOSS, tuple(shape))
    with storages or contextlib.nullcontext():
        loss = answer(*call)
    report: dict[str, Any] = {"the loss": loss}
    for name, parameter in stage.named_parameters():
        report[f"gradient of {name}"] = parameter.grad
    asked = {kind: [i for what, i in given if what == kind] for kind in ("forward", "backward")}
    backward = asked["backward"]
    # an order of kinds of the answer's own shows in the limits
    if [what for what, _ in stage.passes] == [what for what, _ in given]:
        backward = [asked["forward"][k] for what, k in stage.passes if what == "backward"]
    report["the micro-batch of backward pass"] = backward
    return report


# The oracle. --------------------------------------------------------------------------


def _names(weights: Sequence[torch.Tensor]) -> list[str]:
    return ["w_in", "w_out", "embedding"][: len(weights)]


def whole(c: Case) -> list[dict[str, Any]]:
    """Return what all ranks hold if the whole model is trained in one process."""
    dtype = c.weights[0][0].dtype
    # a copy in any case, so that the inputs do not gather gradients
    state = [[w.clone().double().requires_grad_() for w in weights] for weights in c.weights]
    x, targets = torch.stack(c.inputs[0]), torch.stack(c.targets[-1]).double()
    if len(state[0]) > 2:
        x = nn.functional.embedding(x, state[0][2])
    x = x.double()
    for weights in state:
        x = x + torch.tanh(x @ weights[0]) @ weights[1]
    # all micro-batches are of one size, so the mean of their losses is that of all numbers
    loss = LOSS(x, targets)
    loss.backward()  # type: ignore[no-untyped-call]
    return [
        {
            "the loss": loss.item() if rank == c.n - 1 else None,
            **{
                f"gradient of {name}": None if w.grad is None else w.grad.to(dtype)
                for name, w in zip(_names(weights), weights, strict=True)
            },
            "the micro-batch of backward pass": [
                i for what, i in c.order[rank] if what == BACKWARD
            ],
        }
        for rank, weights in enumerate(state)
    ]


def sizes(c: Case) -> list[dict[str, Any]]:
    """Return what errors are relative to: of a gradient its largest element, in magnitude."""
    return [
        {
            key: torch.full_like(value, value.abs().max().item())
            if isinstance(value, torch.Tensor)
            else None
            for key, value in report.items()
        }
        for report in whole(c)
    ]


# What an answer shows. --------------------------------------------------------------


def _passes(one: JudgedCase, rank: int) -> list[str]:
    """Return the passes that a rank has made, in order."""
    return [mark.text for mark in one.trace.marks[rank] if mark.text in (FORWARD, BACKWARD)]


def _own_order(one: JudgedCase) -> bool:
    """Return whether some rank's passes came in another order of kinds than was asked for."""
    asked = [[what for what, _ in order] for order in one.case.order]
    found = [_passes(one, rank) for rank in one.case.ranks]
    return any(sorted(f) == sorted(a) and f != a for f, a in zip(found, asked, strict=True))


def _twice(one: JudgedCase) -> bool:
    """Return whether a rank has made more forward passes than there are micro-batches."""
    m = len(one.case.inputs[0])
    return any(_passes(one, rank).count(FORWARD) > m for rank in one.case.ranks)


def _too_early(one: JudgedCase, rank: int) -> bool:
    """Return whether a rank has asked for two more activations than it has put to use."""
    asked = sum(op.kind == "recv" and op.peer == rank - 1 for op in one.trace.operations[rank])
    return asked > _passes(one, rank).count(FORWARD) + 1


def _inside_held(one: JudgedCase) -> tuple[int, int] | None:
    """Return how many tensors that the stage keeps inside are held where too much is.

    With it comes how many the order asks for.
    """
    rows = one.case.shape[:-1]
    shape = "×".join(map(str, [*rows, _WIDTH * _INSIDE]))
    for rank, marks in enumerate(one.trace.marks):
        for mark in marks:
            if mark.text.startswith("holds "):
                found = re.search(rf"(\d+) of {shape} ", mark.text)
                return int(found[1]) if found else 0, most_in_flight(one.case.order[rank])
    return None


def _held(e: Evidence, condition: Callable[[JudgedCase], bool]) -> bool:
    over = [one for one in e.failed if one.diagnosis is Diagnosis.MEMORY_LIMIT and one.limit]
    return e.diagnosis is Diagnosis.MEMORY_LIMIT and bool(over) and all(map(condition, over))


def _receives_early(one: JudgedCase) -> bool:
    """Return whether the rank that holds too much waits for two more activations than it has used.

    One may be on its way while the pass before it computes.
    """
    for rank, marks in enumerate(one.trace.marks):
        for mark in marks:
            if mark.text.startswith("holds "):
                posted = sum(
                    op.kind == "recv" and op.peer == rank - 1 and op.posted <= mark.time
                    for op in one.trace.operations[rank]
                )
                made = sum(m.text == FORWARD and m.time <= mark.time for m in marks)
                return posted > made + 1
    return False


def _graphs(one: JudgedCase) -> bool:
    found = _inside_held(one)
    return found is not None and found[0] > found[1]


def _timed(e: Evidence, condition: Callable[[JudgedCase], bool]) -> bool:
    words = (Diagnosis.TOO_MANY_SECONDS, Diagnosis.TOO_FEW_SECONDS)
    return e.diagnosis in words and condition(e.here)


def _only(e: Evidence, concerned: Callable[[Case], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others of several ranks pass."""
    failed = [one for one in e.failed if one.limit is None]
    others = [one for one in e.passed if one.case.n > 1 and not concerned(one.case)]
    return bool(failed) and bool(others) and all(concerned(one.case) for one in failed)


def _waits(e: Evidence) -> set[str]:
    """Return what the ranks of a deadlock wait in."""
    return set() if e.failure is None else {wait.call for wait in e.failure.waits}


def _send_to_each_other(e: Evidence) -> bool:
    """Return whether ranks wait in a circle, and all of them to send."""
    if e.failure is None or e.diagnosis is not Diagnosis.DEADLOCK:
        return False
    waits = [wait.call for wait in e.failure.waits if wait.rank in e.failure.cycle]
    return bool(waits) and set(waits) == {"send"}


def _sent_back_to_none(e: Evidence) -> bool:
    """Return whether a rank sends to the one before it, which has returned."""
    if e.failure is None or e.diagnosis is not Diagnosis.DEADLOCK:
        return False
    lost = [wait for wait in e.failure.waits if set(wait.peers) & set(e.failure.ended)]
    return bool(lost) and all(
        wait.call == "send" and wait.peers == (wait.rank - 1,) for wait in lost
    )


def _loss(e: Evidence, rank: int) -> Any:
    return e.actual[rank]["the loss"]


run_pipeline = Exercise(
    signature=(
        "run_pipeline(stage: nn.Module, order: list[tuple[str, int]], inputs: list[Tensor] | None,"
        " targets: list[Tensor] | None, loss_fn, shape: tuple[int, ...]) -> float | None"
    ),
    summary="forward and backward passes of a stage in a given order, between its neighbours",
    inputs=inputs,
    adapter=train_once,
    values=Values(
        whole,
        # 1678 roundings of float32 are 1e-4 of the largest element
        reduced=lambda c: 1677,
        magnitude=sizes,
        relative=1e-4,
    ),
    traffic=TrafficRules(
        limits=(
            point(
                replace(
                    held("bytes of activations beyond those of the order", "=", lambda c: 0),
                    applies=lambda c: c.network is None,
                )
            ),
            virtual_seconds("=", lambda c: schedule_seconds(c.order, *c.seconds)),
        )
    ),
    points=2.0,
    mistakes=(
        Mistake(
            "The loss is returned on the last stage alone, as a float; the others return None.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and any(_loss(e, rank) is not None for rank in e.case.ranks[:-1])
            ),
        ),
        Mistake(
            "The last stage returns the mean loss as a float: loss.item() makes one of a tensor of"
            " one element.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE and isinstance(_loss(e, -1), torch.Tensor)
            ),
        ),
        Mistake(
            "The last stage has to return the mean loss.",
            when=lambda e: e.diagnosis is Diagnosis.WRONG_TYPE and _loss(e, -1) is None,
        ),
        Mistake(
            "Two neighbours send to each other at the same time: one an activation, the other a"
            " gradient. dist.send returns only when the other side receives, so both wait. Use"
            " isend, and wait later.",
            when=_send_to_each_other,
        ),
        Mistake(
            "A stage sends to the one before it, which has returned without receiving that. Does"
            " every stage but the last receive a gradient in each backward pass?",
            when=_sent_back_to_none,
        ),
        Mistake(
            "A stage waits for activations of several micro-batches before it runs a pass, and the"
            " stage before it waits for a gradient first. Receive only what the next pass needs.",
            when=lambda e: (
                e.diagnosis is Diagnosis.DEADLOCK
                and _waits(e) == {"recv"}
                and any(_too_early(e.here, rank) for rank in e.case.ranks[1:])
            ),
        ),
        Mistake(
            "The tensors between stages have the dtype of the stage's parameters:"
            " next(stage.parameters()).dtype.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.DTYPE_MISMATCH, Diagnosis.EXCEPTION)
                and _only(e, lambda c: c.weights[0][0].dtype is torch.float64)
            ),
        ),
        Mistake(
            "It is right where the backward passes come in the order of the forward ones, and only"
            " there. The order names the micro-batch of each pass: look up what you keep by its"
            " number.",
            when=lambda e: _only(e, lambda c: any(_crossed(order) for order in c.order)),
        ),
        Mistake(
            "The stage is called more often than there are micro-batches, perhaps to compute its"
            " activations again. That saves memory, and takes the time of a forward pass each: keep"
            " x and y of a micro-batch until its backward pass.",
            when=lambda e: _timed(e, _twice),
        ),
        Mistake(
            "The passes come in another order than the argument says. It may be any order: go"
            " through it pass by pass.",
            when=lambda e: _timed(e, _own_order) or _held(e, _own_order),
        ),
        Mistake(
            "Tensors inside the stage outlive their backward pass. They belong to autograd's graph,"
            " which backward frees, unless it is told retain_graph=True or never comes.",
            when=lambda e: _held(e, _graphs),
        ),
        Mistake(
            "Receives are posted for several micro-batches ahead, and each has a tensor waiting."
            " Post the receive of a pass just before it, or one pass ahead.",
            when=lambda e: _held(e, _receives_early),
        ),
        Mistake(
            "What the stage keeps inside is freed in time, but inputs, outputs or gradients of"
            " micro-batches that are done are still there: in a list or dictionary, in requests, or"
            " in variables that the next pass has not set yet. A request keeps its tensor until it"
            " is waited for and dropped: take both out when the backward pass comes.",
            when=lambda e: _held(e, lambda one: not _graphs(one) and not _own_order(one)),
        ),
        Mistake(
            "Each pass comes in its place and runs once, so a stage waits where it could work:"
            " receive only what the next pass needs, just before it, and do not wait for a send"
            " before you go on.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_SECONDS
                and not _twice(e.here)
                and not _own_order(e.here)
            ),
        ),
    ),
)


def _crossed(order: Sequence[Sequence[Any]]) -> bool:
    """Return whether backward passes come in another order than their forward passes."""
    back = [i for what, i in order if what == BACKWARD]
    return back != sorted(back)
