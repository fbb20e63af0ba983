"""Chapter 23: the state of an optimizer, cut into shards (ZeRO-1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.course.chapters.evidence import nearly
from grader.exercise.cases import Case, Draw, Kind, Large, PerRank
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import PROCESS, grown, held, point, sent_elements
from grader.instruments import HeldStorages, return_freed_memory
from grader.instruments.marks import memory_mark
from headcount.core.verdict import Diagnosis
from headcount.launch.world import Pause
from headcount.rank.torch_startup import without_compiler

# Inputs. ----------------------------------------------------------------------------

#: Elements that are granted for each parameter beyond a shard, for padding, counters and flags.
GRANTED = 64


@dataclass(frozen=True)
class _Setting:
    """The parameters of a case, and which gradients there are.

    Attributes:
        name: the name of the case.
        shapes: shapes of the distinct parameters.
        order: the parameters by number, as the optimizer is given them; a tied one comes twice.
        frozen: the numbers of those that do not require a gradient.
        has: whether a rank has a gradient, given step, number of the parameter, and rank.
        dtype: the dtype of all parameters.
        steps: the number of steps.
        once: whether they are given as a generator, which can be gone through once.
        weight_decay, eps: arguments of the optimizer.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    order: tuple[int, ...] = ()
    frozen: tuple[int, ...] = ()
    has: Callable[[int, int, int], bool] = lambda step, i, rank: True
    dtype: torch.dtype = torch.float32
    steps: int = 2
    once: bool = False
    weight_decay: float = 0.2
    eps: float = 0.1


def _settings(n: int) -> Iterator[_Setting]:
    """Yield the parameters of each case; the plainest come first."""
    yield _Setting("two layers", ((3, 4), (3,), (2, 3), (2,)), steps=3)
    yield _Setting("sizes that n divides", ((2, n), (n, 3), (n,)), dtype=torch.float64)
    yield _Setting("a large matrix", ((24, 40), (24,)), steps=3)
    yield _Setting("parameters as a generator", ((5, 7), (7,)), dtype=torch.float64, once=True)
    yield _Setting("tied weights", ((20, 18), (18,)), order=(0, 1, 0), steps=3)
    yield _Setting(
        "frozen parameters", ((30, 40), (4, 9), (900,), (9,)), frozen=(0, 2), eps=1e-2
    )  # fmt: skip
    yield _Setting(
        "a gradient that is None everywhere in one step", ((4, 5), (6,), (3, 3)),
        has=lambda step, i, rank: (step, i) not in ((1, 1), (2, 0)), steps=4,
    )  # fmt: skip
    yield _Setting(
        "gradients that some ranks have", ((4, 4), (7,), (5,)),
        has=lambda step, i, rank: (rank + step + i) % 2 == 0, steps=3,
    )  # fmt: skip
    yield _Setting("one parameter, of fewer elements than ranks", ((3,),), dtype=torch.float64)
    yield _Setting(
        "an empty parameter and a scalar, no decay", ((0,), (3, 5), ()), weight_decay=0.0
    )


def inputs(draw: Draw) -> Iterator[Case]:
    """Draw parameters, the same on all ranks, and each rank's gradients for every step."""
    for one in _settings(draw.n):
        kinds = [Kind(one.dtype, shape) for shape in one.shapes]
        columns = [[draw.per_rank(kind, "AVG") for kind in kinds] for _ in range(one.steps)]

        def there(step: int, i: int, rank: int, one: _Setting = one) -> bool:
            return i not in one.frozen and one.has(step, i, rank)

        case = draw.case(
            one.name,
            state=[draw.tensor(kind) for kind in kinds],
            order=list(one.order or range(len(kinds))),
            frozen=list(one.frozen),
            gradients=PerRank(
                [
                    [column[r] if there(step, i, r) else None for i, column in enumerate(row)]
                    for step, row in enumerate(columns)
                ]
                for r in draw.ranks
            ),
            once=one.once,
            options={
                "lr": 0.1,
                "betas": (0.8, 0.95),
                "eps": one.eps,
                "weight_decay": one.weight_decay,
            },
        )
        yield replace(case, columns={**case.columns, "most": most_held(case)})
    if draw.n == _LARGE_ON:
        yield _large_case(draw)


# The large case, in which the judge asks the kernel what a rank holds. --------------
#
# What a rank counts of its own memory is its own word, so here its process is weighed.  It can
# hold no less than the kernel counts, and could not compute it again: the numbers are random, and
# the judge tells them when the call has begun.  And it has to hold all of them: of which elements
# it has to show the last step, it learns after it has been weighed.

#: The number of ranks, and the shapes of the parameters.
_LARGE_ON, _LARGE = 2, ((1280, 1024), (1024,), (1024, 1278), (1024,))


def _large_case(draw: Draw) -> Case:
    large = Large(draw, sum(map(math.prod, _LARGE)))
    state, *gradients = names = ("parameters", "first gradient", "second gradient")
    case = draw.case(
        f"{4 * large.numel >> 20} MB of parameters, weighed from outside",
        state=[],
        order=[],
        frozen=[],
        gradients=[],
        once=False,
        options={"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.1, "weight_decay": 0.2},
    )
    shown = [[large.shown(name)] for name in gradients] + [[torch.ones(len(large.places))]]
    case = replace(
        case,
        pauses=(
            Pause(tells=lambda: list(map(large.whole, names))),
            Pause(weighs=True, tells=lambda: large.places),
        ),
        secrets={
            "state": [large.shown(state)],
            "order": [0],
            "gradients": [shown] * draw.n,
            "numel": large.numel,
        },
    )
    return replace(case, columns={**case.columns, "most": most_held(case)})


# The call in a rank. ----------------------------------------------------------------


def optimise(
    answer: Callable[..., Any],
    state: list[torch.Tensor],
    order: list[int],
    frozen: list[int],
    gradients: list[list[torch.Tensor | None]],
    once: bool,
    options: dict[str, Any],
    most: int,
) -> dict[str, Any]:
    """Make the optimizer, let it make its steps, and mark what it holds between calls.

    ``most`` is how many bytes it may hold.  Of a case in which it holds more, the first moment
    is marked and no other, since each would be waited for.
    """
    if not state:
        return _weighed(answer, options, most)
    parameters = [
        nn.Parameter(tensor.clone(), requires_grad=i not in frozen)
        for i, tensor in enumerate(state)
    ]
    note = getattr(dist.group.WORLD, "mark", lambda text: None)

    def own() -> Iterable[torch.Tensor]:
        return [t for p in parameters for t in (p, p.grad) if t is not None]

    storages, over = HeldStorages(own), False

    def after(what: str) -> None:
        nonlocal over
        if not over:
            storages.settle(most)
            nbytes = storages.nbytes
            over = nbytes > most
            note(memory_mark(nbytes, f"after {what}", str(storages)))

    report: dict[str, Any] = {}
    given: Any = [parameters[i] for i in order]
    cleared = True
    with storages:
        optimizer = answer(iter(given) if once else given, **options)
    after("__init__")
    for number, row in enumerate(gradients, 1):
        for parameter, gradient in zip(parameters, row, strict=True):
            # the answer may change it in place, and arguments must stay as they are
            parameter.grad = None if gradient is None else gradient.clone()
        with storages:
            optimizer.step()
        after(f"step {number}")
        for i, parameter in enumerate(parameters):
            report[_key(i, number)] = parameter.detach().clone()
        with storages:
            optimizer.zero_grad()
        cleared = cleared and not any(p.grad is not None and p.grad.any() for p in parameters)
    after("zero_grad")
    report["gradients cleared by zero_grad"] = cleared
    return report


def _weighed(answer: Callable[..., Any], options: dict[str, Any], most: int) -> dict[str, Any]:
    """Make steps with large parameters, and let the judge weigh this process before the last."""
    group: Any = dist.group.WORLD
    return_freed_memory()
    first, *gradients = group.pause()
    parameters = [nn.Parameter(piece.clone()) for piece in _pieces(first)]
    del first
    storages = HeldStorages(lambda: [t for p in parameters for t in (p, p.grad) if t is not None])
    with storages:
        optimizer = answer(parameters, **options)
    cleared = True

    def step(gradient: torch.Tensor) -> bool:
        for parameter, piece in zip(parameters, _pieces(gradient), strict=True):
            parameter.grad = piece.clone()
        del gradient, piece
        with storages:
            optimizer.step()
            optimizer.zero_grad()
        return not any(p.grad is not None and p.grad.any() for p in parameters)

    while gradients:
        cleared &= step(gradients.pop(0))
    for parameter in parameters:
        parameter.grad = None  # zeros are as right, and would be weighed
    storages.settle(most)
    group.mark(memory_mark(storages.nbytes, "after step 2", str(storages)))
    places = group.pause()
    cleared &= step(torch.ones(sum(p.numel() for p in parameters)))
    shown = torch.cat([p.detach().flatten() for p in parameters])[places]
    return {_SAMPLE: shown, "gradients cleared by zero_grad": cleared}


#: What ranks report of large parameters, of which too much would travel.
_SAMPLE = "a sample of the parameters after step 3"


def _pieces(flat: torch.Tensor) -> list[torch.Tensor]:
    """Return views of the elements of each parameter."""
    pieces = torch.split(flat, [math.prod(shape) for shape in _LARGE])
    return [piece.view(shape) for piece, shape in zip(pieces, _LARGE, strict=True)]


def _key(i: int, step: int) -> str:
    return f"parameter {i} after step {step}"


# The oracle. ------------------------------------------------------------------------


def with_torch(c: Case) -> list[dict[str, Any]]:
    """Return what torch's optimizer makes of the mean gradients in one process, for every rank."""
    parameters = [nn.Parameter(tensor.clone()) for tensor in c.state]
    report: dict[str, Any] = {}
    with without_compiler():
        optimizer = torch.optim.AdamW(parameters, **c.options)
        for step in range(len(c.gradients[0])):
            for i, p in enumerate(parameters):
                p.grad = None if i in c.frozen else _mean([row[step][i] for row in c.gradients])
            optimizer.step()
            for i, p in enumerate(parameters):
                report[_key(i, step + 1)] = p.detach().clone()
    if c.secrets:  # of the large case, ranks report the last step
        report = {_SAMPLE: report[_key(0, len(c.gradients[0]))]}
    return [{**report, "gradients cleared by zero_grad": True}] * c.n


def _mean(gradients: list[torch.Tensor | None]) -> torch.Tensor | None:
    """Return the mean over all ranks, zeros for ``None``; ``None`` if no rank has a gradient."""
    there = [g.double() for g in gradients if g is not None]
    if not there:
        return None
    like = next(g for g in gradients if g is not None)
    return (torch.stack(there).sum(0) / len(gradients)).to(like.dtype)


def sizes(c: Case) -> list[dict[str, Any]]:
    """Return what the errors of the parameters are relative to: their size, and at least 1."""
    return [
        {
            key: value.abs().clamp(min=1) if isinstance(value, torch.Tensor) else value
            for key, value in report.items()
        }
        for report in with_torch(c)[:1]
    ] * c.n


# Limits. ----------------------------------------------------------------------------


def _trained(c: Case) -> list[torch.Tensor]:
    return [tensor for i, tensor in enumerate(c.state) if i not in c.frozen]


def elements(c: Case) -> int:
    """Return P, the number of distinct trainable elements."""
    return int(c.secrets.get("numel", sum(tensor.numel() for tensor in _trained(c))))


def _shard(c: Case) -> int:
    return -(-elements(c) // c.n)


def _granted(c: Case) -> int:
    return GRANTED * len(_LARGE if c.secrets else c.state)


def most_held(c: Case) -> int:
    """Return the bytes of momentum and variance of a shard, with those that are granted."""
    return int((2 * _shard(c) + _granted(c)) * c.state[0].element_size())


def most_grown(c: Case) -> int:
    """Return the bytes of the parameters and of what may be held, with those of a process."""
    return elements(c) * 4 + most_held(c) + PROCESS


def most_sent(c: Case) -> int:
    """Return the elements of a reduce-scatter and an all-gather, with those that are granted."""
    return 2 * (c.n - 1) * _shard(c) + _granted(c)


# What an answer shows. --------------------------------------------------------------


def _fails_unless_n_divides(e: Evidence) -> bool:
    """Return whether runs break off where n does not divide P, and pass where it does."""
    several = [one for one in e.judged if one.case.n > 1 and one.limit is None]
    right = [one for one in several if one.passed]
    wrong = [one for one in several if not one.passed]
    return (
        e.diagnosis in (Diagnosis.EXCEPTION, Diagnosis.SIZE_MISMATCH, Diagnosis.CRASHED)
        and bool(right)
        and all(elements(one.case) % one.case.n == 0 for one in right)
        and all(elements(one.case) % one.case.n for one in wrong)
    )


def _only(e: Evidence, concerned: Callable[[Case], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others of several ranks pass.

    What misses a limit alone holds what it should, and counts for neither.
    """
    others = [one for one in e.passed if one.case.n > 1 and not concerned(one.case)]
    wrong = [one for one in e.failed if one.limit is None]
    return bool(others and wrong) and all(concerned(one.case) for one in wrong)


def _tied(c: Case) -> bool:
    return len(set(c.order)) < len(c.order)


def _columns(c: Case) -> Iterator[list[bool]]:
    """Yield of each gradient of each step whether it is missing, by rank."""
    for step in range(len(c.gradients[0])):
        for column in zip(*(c.gradients[r][step] for r in c.ranks), strict=True):
            yield [g is None for g in column]


def _missing_on_some(c: Case) -> bool:
    return any(len(set(missing)) > 1 for missing in _columns(c))


def _missing_everywhere(c: Case) -> bool:
    return any(map(all, _columns(c)))


def _as_float32(one: JudgedCase) -> bool:
    """Return whether float64 numbers are wrong by no more than float32 rounds."""
    want, got = with_torch(one.case)[0], one.actual[0]
    named = {name: x for name, x in want.items() if name.startswith("parameter")}
    return all(x.dtype == torch.float64 and nearly(x, got[name], 0.01) for name, x in named.items())


def _lacks(c: Case) -> bool:
    """Return whether a gradient is missing on some rank."""
    return any(g is None for rank in c.gradients for row in rank for g in row)


def _over(e: Evidence) -> list[JudgedCase]:
    """Return where too much is held."""
    return [one for one in e.failed if one.diagnosis is Diagnosis.MEMORY_LIMIT and one.limit]


def _holds(e: Evidence, least: Callable[[Case], int]) -> bool:
    """Return whether, wherever too much is held, it is at least so many elements."""
    return e.diagnosis is Diagnosis.MEMORY_LIMIT and all(
        one.limit.measured >= least(one.case) * one.case.state[0].element_size()
        for one in _over(e)
        if one.limit is not None
    )


def _holds_all(e: Evidence) -> bool:
    """Return whether it can be the state of all parameters: on one rank, they are the shard."""
    several = any(one.case.n > 1 for one in _over(e))
    return several and _holds(e, lambda c: 2 * elements(c) if c.n > 1 else 0)


def _too_much_first(e: Evidence, concerned: Callable[[Case], bool]) -> bool:
    """Return whether too much is held in such a case, and in none of those before it."""
    return e.diagnosis is Diagnosis.MEMORY_LIMIT and concerned(e.case)


def _called(e: Evidence, *kinds: str) -> bool:
    return any(op.kind in kinds for ops in e.trace.operations for op in ops)


ShardedAdamW = Exercise(
    signature=(
        "ShardedAdamW(params, lr: float, betas: tuple[float, float], eps: float,"
        " weight_decay: float)"
    ),
    summary="AdamW, of which every rank keeps the state of one shard",
    inputs=inputs,
    adapter=optimise,
    values=Values(
        with_torch,
        # 168 roundings of float32 are 1e-5
        reduced=lambda c: 167,
        magnitude=sizes,
    ),
    traffic=TrafficRules(
        limits=(
            point(held("bytes held by one rank between calls", "≤", most_held)),
            point(grown("≤", most_grown)),
            point(sent_elements("≤", lambda c: most_sent(c) * len(c.gradients[0]))),
        ),
        allowed=frozenset({"reduce_scatter", "all_gather", "broadcast"}),
    ),
    points=3.0,
    mistakes=(
        Mistake(
            "It works where n divides the number of elements, and only there. Pad the row of all"
            " elements with zeros to n·⌈P/n⌉ before it is cut.",
            when=_fails_unless_n_divides,
        ),
        Mistake(
            "params may be a generator, as module.parameters() is, and can be gone through only"
            " once. Make a list of it first.",
            when=lambda e: _only(e, lambda c: bool(c.once)),
        ),
        Mistake(
            "Where a gradient is None on some ranks, these leave out a call that the others make."
            " Every rank takes part, with zeros, unless no rank has a gradient.",
            when=lambda e: (
                e.diagnosis
                in (Diagnosis.DEADLOCK, Diagnosis.SIZE_MISMATCH, Diagnosis.ORDER_MISMATCH)
                and _only(e, _missing_on_some)
            ),
        ),
        Mistake(
            "p.grad may be None: on this rank, or on all of them. A frozen parameter has none at"
            " all.",
            when=lambda e: e.raised("AttributeError", "TypeError") and _only(e, _lacks),
        ),
        Mistake(
            "float64 numbers come out with as few digits as float32 holds. torch.zeros makes"
            " float32; p.new_zeros keeps the dtype of p, for the state and for what is sent.",
            when=lambda e: all(map(_as_float32, e.failed)),
        ),
        Mistake(
            "A gradient that is None on all ranks is not a gradient of zeros: the parameter does"
            " not change in this step, by decay or otherwise, and its momentum does not either.",
            when=lambda e: e.diagnosis is Diagnosis.WRONG_VALUE and _only(e, _missing_everywhere),
        ),
        Mistake(
            "With a tied weight the shards are too long: it is counted once for each time that it"
            " is in params. list(dict.fromkeys(params)) has each parameter once.",
            when=lambda e: _too_much_first(e, _tied),
        ),
        Mistake(
            "With frozen parameters the shards are too long: a parameter whose requires_grad is"
            " False needs no momentum and no variance.",
            when=lambda e: _too_much_first(e, lambda c: bool(c.frozen)),
        ),
        Mistake(
            "You keep momentum and variance for all parameters. A rank needs them for its own shard"
            " alone, ⌈P/n⌉ elements each: that is what ZeRO saves.",
            when=_holds_all,
        ),
        Mistake(
            "Beside momentum and variance, something as long as a shard is still there after step,"
            " perhaps a copy of the weights or of the mean gradient. Make it anew in every step, as"
            " a local variable; a view of the parameters' own memory costs nothing.",
            when=lambda e: _holds(e, lambda c: 3 * _shard(c)) and not _holds_all(e),
        ),
        Mistake(
            "Every rank receives whole gradients, but needs only those of its shard."
            " dist.reduce_scatter_tensor gives each rank just these, summed.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES and not _called(e, "reduce_scatter")
            ),
        ),
        Mistake(
            "More goes out than one reduce-scatter and one all-gather of all elements. The mean"
            " gradients need not be gathered: only the updated weights do.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and _called(e, "reduce_scatter"),
        ),
    ),
)
