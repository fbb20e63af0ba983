"""Chapter 29: fewer bytes in a step, and fewer steps that send any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.compare import tolerance
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import LUCK, Limit, combined, point, record_of, sent
from headcount.core.verdict import Diagnosis
from headcount.trace.trace import Measured

# A sum of which int8 is sent. -------------------------------------------------------


def tensors(draw: Draw) -> Iterator[Case]:
    """Draw float32 tensors for every rank; the plainest come first."""
    n, single = draw.n, torch.float32

    def drawn(*shape: int) -> PerRank:
        return draw.per_rank(Kind(single, shape))

    yield draw.case("7 numbers", x=drawn(7))
    yield draw.case(f"{n + 1} of {n} ranks", x=drawn(n + 1))
    yield draw.case("20×50 numbers", x=drawn(20, 50))
    yield draw.case(
        "the last rank's numbers are a thousand times larger",
        x=PerRank(x * (1000 if r == n - 1 else 1) for r, x in enumerate(drawn(1000))),
    )
    yield draw.case(
        "rank 0 has only zeros", x=PerRank(x * min(r, 1) for r, x in enumerate(drawn(2 * n + 1)))
    )
    last = (torch.arange(n) == n - 1).to(single)
    yield draw.case("zeros but for the last of n", x=PerRank(x * last for x in drawn(n)))
    yield draw.case("n − 1 millionths", x=PerRank(x * 1e-6 for x in drawn(n - 1)))
    yield draw.case("one number", x=drawn(1))
    yield draw.case("no numbers", x=drawn(0))


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def may_be_off(c: Case) -> float:
    """Return how far an element of the sum may be off: 2n · max over ranks of max│x│ / 127."""
    largest = max((float(x.abs().max()) for x in c.x if x.numel()), default=0.0)
    return 2 * c.n * largest / 127


def total(c: Case) -> torch.Tensor:
    """Return the sum over ranks, rounded once."""
    return torch.stack(list(c.x)).double().sum(0).float()


def slack(c: Case) -> list[torch.Tensor]:
    """Return magnitudes for which the tolerance of a sum of n terms is the allowed error."""
    size = may_be_off(c) / tolerance(torch.float32, c.n)
    return [torch.full_like(x, size) for x in c.x]


def told(c: Case, _: Sequence[Any]) -> int:
    """Return the bytes that all ranks together must receive to be as near to the sum as asked.

    The others' sum is nearly normal.  A guess is near enough with a probability of at most the
    width of what is allowed times the highest density, and each element counts for as many bits
    as that is improbable, rounded down.  Of few elements nothing is asked.
    """
    if length(c) < 100:
        return 0
    rows = torch.stack([x.flatten() for x in c.x]).double()
    bits = 0
    for row in rows:
        spread = float((rows.sum(0) - row).std())
        likely = 2 * may_be_off(c) / (spread * math.sqrt(2 * math.pi)) if spread else 1.0
        bits += max(0, max(0, math.floor(-math.log2(likely))) * length(c) - LUCK)
    return bits // 8


def _only_matrices(e: Evidence) -> bool:
    """Return whether calls fail with tensors of several dimensions only, and vectors pass."""
    return all(
        one.diagnosis is Diagnosis.EXCEPTION and one.case.x[0].dim() > 1 for one in e.failed
    ) and any(one.case.x[0].dim() == 1 for one in e.passed)


def _owner_differs(e: Evidence) -> bool:
    """Return whether wherever bits differ, one rank alone has others than all the rest."""
    if e.diagnosis is not Diagnosis.NONDETERMINISTIC:
        return False
    seen = [one for one in e.failed if one.diagnosis is e.diagnosis and one.case.n > 2]

    def alone(one: JudgedCase) -> bool:
        rows = torch.stack([a.flatten() for a in one.actual])
        common = rows.mode(0).values
        return bool(((rows != common).sum(0) <= 1).all()) and bool((rows != common).any())

    return bool(seen) and all(map(alone, seen))


def _differs_when_repeated(e: Evidence) -> bool:
    """Return whether all ranks hold the same bits, so that it is another run that differs."""
    return e.diagnosis is Diagnosis.NONDETERMINISTIC and all(
        torch.equal(one, e.actual[0]) for one in e.actual
    )


def _sends(e: Evidence, concerned: Callable[[Any, Case], bool]) -> bool:
    """Return whether too much is sent, and a message is of this kind."""
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and any(
        concerned(op, e.case) for op in e.trace.sends()
    )


quantized_all_reduce = Exercise(
    signature="quantized_all_reduce(x: Tensor) -> None",
    summary="in place, the sum of float32 tensors, of which int8 is sent",
    inputs=tensors,
    values=Values(
        lambda c: [total(c)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=slack,
        same_bits=True,
    ),
    traffic=TrafficRules(
        limits=(point(sent("≤", lambda c: 2 * (c.n - 1) * (-(-length(c) // c.n) + 8))),), least=told
    ),
    mistakes=(
        Mistake(
            "x may have several dimensions. x.view(-1) is the same memory as one row: cut that.",
            when=_only_matrices,
        ),
        Mistake(
            "One rank has other bits than all the rest, each for the chunk that it adds up: it"
            " keeps its exact sum. The others have only what it sent, q · scale, so it has to keep"
            " that, too.",
            when=_owner_differs,
        ),
        Mistake(
            "All ranks agree, but the same call gives other bits when it is repeated: something is"
            " drawn at random, or depends on which message comes first. Round to the nearest, or"
            " with a generator that has a fixed seed, and add up in a fixed order.",
            when=_differs_when_repeated,
        ),
        Mistake(
            "There are messages of float32 here, four bytes for each element. Send"
            " round(chunk / scale) as int8, and of float32 the scale alone.",
            when=lambda e: _sends(e, lambda op, c: op.dtype == "float32" and op.count > 2),
        ),
        Mistake(
            "Whole tensors are sent. If each rank adds up one chunk, 1/n of x, a message need not"
            " be longer than that.",
            when=lambda e: _sends(e, lambda op, c: op.count >= length(c) > c.n + 8 > 10),
        ),
        Mistake(
            "All ranks wait for what they send to be received, and none of them has posted its"
            " receive yet. Start with request = dist.isend(...), then recv, then request.wait().",
            when=evidence.all_send,
        ),
        *evidence.BUFFER_RACES,
    ),
)


# The k largest, with error feedback. ------------------------------------------------


def _rows(*rows: Sequence[float]) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=torch.float32) for row in rows]


def gradients(draw: Draw) -> Iterator[Case]:
    """Draw the gradients of some steps, for one compressor each; no two numbers are tied."""
    single, double = torch.float32, torch.float64
    still = [0.0] * 4
    yield draw.case(
        "one of four numbers",
        k=1,
        grads=_rows([3, -5, 1, 2], [1, 1, 1, 1], still, still, still),
        reused=False,
    )
    for name, kind, k, steps, quiet, reused in (
        ("3 of 12 numbers", Kind(single, (12,)), 3, 4, 0, False),
        ("6 of a matrix", Kind(single, (5, 8)), 6, 6, 0, False),
        ("10 of 100 float64 numbers", Kind(double, (100,)), 10, 5, 0, False),
        ("gradients that end, until all is sent", Kind(double, (9,)), 3, 3, 2, False),
        ("all of 9 numbers", Kind(single, (9,)), 9, 3, 0, False),
        ("one number", Kind(single, (1,)), 1, 2, 0, False),
        ("gradients in one buffer", Kind(single, (3, 4)), 2, 5, 0, True),
    ):
        grads = [draw.tensor(kind) for _ in range(steps)]
        grads += [torch.zeros(kind.shape, dtype=kind.dtype)] * quiet
        yield draw.case(name, k=k, grads=grads, reused=reused)
    same = draw.tensor(Kind(double, (6,)))
    yield draw.case("the same gradient in each step", k=1, grads=[same] * 8, reused=False)


def compress_all(
    answer: Callable[..., Any], k: int, grads: list[torch.Tensor], reused: bool
) -> dict[str, Any]:
    """Compress one gradient after the other, and report what was sent, in order of the indices.

    With ``reused`` all gradients come in the same tensor, as those of an optimizer do.
    """
    compressor = answer(k)
    buffer = torch.empty_like(grads[0])
    report: dict[str, Any] = {}
    for step, grad in enumerate(grads, 1):
        found = compressor.compress(buffer.copy_(grad) if reused else grad)
        report[f"step {step}"] = found
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            continue
        indices, values = found
        report[f"step {step}"] = {"indices": indices, "values": values}
        if not all(isinstance(one, torch.Tensor) and one.dim() == 1 for one in found):
            continue
        if len(indices) == len(values) and indices.dtype in (torch.int64, torch.int32):
            order = indices.argsort()
            sorted_values = values.detach()[order].clone()
            report[f"step {step}"] = {"indices": indices[order].long(), "values": sorted_values}
    return report


def feedback(c: Case) -> list[dict[str, Any]]:
    """Return the report of a compressor; what it does not send is added to the next gradient."""
    left = torch.zeros_like(c.grads[0]).flatten()
    report: dict[str, Any] = {}
    for step, grad in enumerate(c.grads, 1):
        whole = left + grad.flatten()
        indices = whole.abs().topk(c.k).indices.sort().values
        report[f"step {step}"] = {"indices": indices, "values": whole[indices]}
        left = whole.index_fill(0, indices, 0)
    return [report] * c.n


def sizes_of_terms(c: Case) -> list[dict[str, Any]]:
    """Return how large the numbers are that a value is the sum of."""
    largest = float(torch.stack([grad.abs() for grad in c.grads]).sum(0).max())
    return [
        {
            step: {"indices": None, "values": torch.full_like(entry["values"], largest)}
            for step, entry in report.items()
        }
        for report in feedback(c)
    ]


#: An assignment to an attribute of the class instead of the object's.
_IN_THE_CLASS = r"(TopKFeedback|__class__|type\(self\)|\bcls)\.\w+(\[[^]\n]{0,200}\])? *[-+*]?=[^=]"


TopKFeedback = Exercise(
    signature="TopKFeedback(k: int)",
    summary="the k largest of a gradient and what was left of those before",
    world_sizes=(1,),
    inputs=gradients,
    adapter=compress_all,
    values=Values(feedback, reduced=lambda c: 2 * len(c.grads), magnitude=sizes_of_terms),
    mistakes=(
        Mistake(
            "Something is kept in the class, and so by all of its objects together, those of other"
            " gradients too. Keep it in the object: self.left.",
            # an earlier gradient, of another shape or dtype, may fail here in any way
            when=lambda e: e.written(_IN_THE_CLASS),
        ),
    ),
)


# Few outer steps for many inner ones. -----------------------------------------------


def _tied() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    module[2].weight = module[0].weight
    return module


def _frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 5))
    for parameter in module[0].parameters():
        parameter.requires_grad_(False)
    return module


#: The networks, by name.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 3),
    "two layers": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)),
    "tied weights": _tied,
    "a frozen layer": _frozen,
}


def network_of(architecture: str, dtype: str, state: Sequence[torch.Tensor]) -> nn.Module:
    """Make a network whose distinct parameters hold ``state``, in their order."""
    module = NETWORKS[architecture]().to(getattr(torch, dtype))
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


#: Network, dtype, inner steps of an outer one, all inner steps, outer learning rate, momentum.
RUNS = (
    ("one layer", "float32", 2, 6, 0.7, 0.9),
    ("two layers", "float64", 3, 10, 0.5, 0.8),
    ("two layers", "float32", 4, 9, 1.0, 0.0),
    ("tied weights", "float32", 1, 4, 0.7, 0.9),
    ("a frozen layer", "float64", 2, 5, 0.6, 0.5),
)


def rounds_of_steps(draw: Draw) -> Iterator[Case]:
    """Draw networks with weights that differ by rank, and what each inner step adds to them."""
    for architecture, dtype, inner_steps, steps, outer_lr, momentum in RUNS:
        module = NETWORKS[architecture]()
        parameters = list(module.parameters())
        kinds = [Kind(getattr(torch, dtype), tuple(p.shape)) for p in parameters]

        def column(kind: Kind) -> torch.Tensor:
            return draw.tensor(Kind(kind.dtype, (draw.n, *kind.shape)))

        state = [column(kind) for kind in kinds]
        updates = [
            [
                column(kind) if p.requires_grad else None
                for kind, p in zip(kinds, parameters, strict=True)
            ]
            for _ in range(steps)
        ]
        yield draw.case(
            f"{architecture}, an outer step after {inner_steps}",
            architecture=architecture,
            dtype=dtype,
            state=PerRank([one[r] for one in state] for r in draw.ranks),
            updates=PerRank(
                [[None if one is None else one[r] for one in step] for step in updates]
                for r in draw.ranks
            ),
            inner_steps=inner_steps,
            outer_lr=outer_lr,
            momentum=momentum,
        )


#: Texts of the marks around a call after which ranks are not to have communicated.
QUIET, BACK = "between outer steps", "an inner step is over"

#: What a report calls the results of the inner steps.
_RETURNED = "after_inner_step returned"


def train_in_rank(
    answer: Callable[..., Any],
    architecture: str,
    dtype: str,
    state: list[torch.Tensor],
    updates: list[list[torch.Tensor | None]],
    inner_steps: int,
    outer_lr: float,
    momentum: float,
) -> dict[str, Any]:
    """Make the inner steps of this rank, call the answer after each, and report the weights."""
    module = network_of(architecture, dtype, state)
    named = dict(module.named_parameters())
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    returned: list[Any] = []
    changed: list[int] = []
    report: dict[str, Any] = {_RETURNED: returned, "inner steps that changed weights": changed}

    def tell(when: str) -> None:
        for name, p in named.items():
            report[f"{name} {when}"] = p.detach().clone()

    trained = answer(module, inner_steps, outer_lr, momentum)
    tell("at the start")
    for number, row in enumerate(updates, 1):
        with torch.no_grad():
            for p, update in zip(named.values(), row, strict=True):
                if update is not None:
                    p.add_(update)
        outer = number % inner_steps == 0
        before = [p.detach().clone() for p in named.values()]
        if not outer:
            note(QUIET)
        returned.append(trained.after_inner_step())
        if not outer:
            note(BACK)
            if not all(map(torch.equal, before, (p.detach() for p in named.values()))):
                changed.append(number)
        else:
            tell(f"after outer step {number // inner_steps}")
    return report


def diloco(c: Case) -> list[dict[str, Any]]:
    """Return what every rank reports if an outer step is one of SGD with Nesterov's momentum.

    Its gradient is how far the ranks have come, on average, against the way that they went
    (arXiv:2311.08105, algorithm 1).
    """
    names = [name for name, _ in NETWORKS[c.architecture]().named_parameters()]
    common = [t.clone().double() for t in c.state[0]]
    velocity = [torch.zeros_like(t) for t in common]
    steps = len(c.updates[0])
    report: dict[str, Any] = {
        _RETURNED: [number % c.inner_steps == 0 for number in range(1, steps + 1)],
        "inner steps that changed weights": [],
    }

    def tell(when: str) -> None:
        for name, t in zip(names, common, strict=True):
            report[f"{name} {when}"] = t.to(getattr(torch, c.dtype), copy=True)

    tell("at the start")
    for outer in range(steps // c.inner_steps):
        inner = range(outer * c.inner_steps, (outer + 1) * c.inner_steps)
        for i, (theta, v) in enumerate(zip(common, velocity, strict=True)):
            updates = [c.updates[r][number][i] for r in c.ranks for number in inner]
            if updates[0] is None:
                continue  # a frozen parameter
            gradient = -torch.stack(updates).double().sum(0) / c.n
            v.mul_(c.momentum).add_(gradient)
            theta -= c.outer_lr * (gradient + c.momentum * v)
        tell(f"after outer step {outer + 1}")
    return [report] * c.n


def sizes_of_weights(c: Case) -> list[dict[str, Any]]:
    """Return what the errors of weights are relative to: their size, and at least 1."""
    return [
        {
            key: value.abs().clamp(min=1) if isinstance(value, torch.Tensor) else None
            for key, value in report.items()
        }
        for report in diloco(c)
    ]


def told_by_others(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that ranks must receive for the weights of rank 0, and for each outer step.

    A frozen weight is told once.
    """
    if c.n == 1:
        return 0
    network = NETWORKS[c.architecture]()
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    news = [
        {
            key: value
            for key, value in report.items()
            if key.endswith(" at the start") or key.split()[0] not in frozen
        }
        for report in expected
    ]
    return combined(c, news)


def _calls_in_between(trace: Measured) -> int:
    """Count the calls that ranks make after inner steps that no outer step follows."""
    record, count = record_of(trace), 0
    for operations, marks in zip(record.operations, record.marks, strict=True):
        begins = [one.time for one in marks if one.text == QUIET]
        ends = [one.time for one in marks if one.text == BACK]
        for begin, end in zip(begins, ends, strict=True):
            count += sum(begin < op.posted < end for op in operations)
    return count


QUIET_IN_BETWEEN = point(
    Limit(
        "calls between outer steps",
        _calls_in_between,
        "≤",
        lambda c: 0,
        Diagnosis.TOO_MANY_MESSAGES,
    )
)


DiLoCo = Exercise(
    signature="DiLoCo(module: nn.Module, inner_steps: int, outer_lr: float, momentum: float)",
    summary="an outer step with Nesterov momentum on the mean change of many inner steps",
    inputs=rounds_of_steps,
    adapter=train_in_rank,
    values=Values(diloco, reduced=lambda c: 167, magnitude=sizes_of_weights),
    traffic=TrafficRules(
        limits=(QUIET_IN_BETWEEN,),
        least=told_by_others,
        allowed=frozenset({"all_reduce", "broadcast"}),
    ),
)
