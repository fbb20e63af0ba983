"""Chapter 28: tokens that choose experts, and experts that live on different ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import bytes_of_all, combined, point
from grader.instruments import differentiate, mark_end
from headcount.core.verdict import Diagnosis

Report = dict[str, Any]

_FLOAT, _DOUBLE = torch.float32, torch.float64

# The router. ------------------------------------------------------------------------

#: Tokens, experts, choices and capacity of each case, and the dtype.
_ROUTED = (
    (7, 4, 1, 2, _FLOAT),
    (9, 4, 2, 100, _DOUBLE),
    (12, 5, 3, 4, _FLOAT),
    (7, 3, 3, 2, _DOUBLE),
    (1, 4, 2, 1, _FLOAT),
    (0, 4, 2, 2, _FLOAT),
    (6, 3, 2, 0, _FLOAT),
    (1000, 8, 2, 230, _DOUBLE),
)


def routed_inputs(draw: Draw) -> Iterator[Case]:
    """Draw logits; in the first case they are small whole numbers."""
    logits = torch.tensor([[3.0, 2, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2]])
    weight = torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8]])
    yield draw.case(
        "4 tokens, 3 experts with room for 2, k = 2",
        logits=logits, k=2, capacity=2, cotangent=weight,
    )  # fmt: skip
    for tokens, experts, k, capacity, dtype in _ROUTED:
        yield draw.case(
            f"{tokens} tokens, {experts} experts with room for {capacity}, k = {k}",
            logits=draw.tensor(Kind(dtype, (tokens, experts))),
            k=k,
            capacity=capacity,
            cotangent=draw.tensor(Kind(dtype, (tokens, k))),
        )


def routed_in_rank(
    answer: Callable[..., Any], logits: Any, k: int, capacity: int, cotangent: Any
) -> Report:
    """Call ``route``, and pull a gradient back through the weights to the logits."""
    logits.requires_grad_()
    result = answer(logits, k, capacity)
    report: Report = {"result": result, "gradient of logits": None}
    if isinstance(result, (list, tuple)):
        report["result"] = [t.detach() if isinstance(t, torch.Tensor) else t for t in result]
        weights = result[1] if len(result) == 2 else None
        if isinstance(weights, torch.Tensor) and weights.requires_grad:
            fits = weights.shape == cotangent.shape
            product = (weights * cotangent).sum() if fits else weights.sum()
            (report["gradient of logits"],) = torch.autograd.grad(
                product, [logits], allow_unused=True
            )
    return report


def routed(c: Case) -> list[Report]:
    """Return the experts and weights of each token's choices, and the gradient of the logits.

    Experts give their places token by token, and to a token's choices from the best on.
    """
    logits = c.logits.double().requires_grad_()
    experts = logits.detach().argsort(dim=1, descending=True, stable=True)[:, : c.k]
    room = [c.capacity] * logits.shape[1]
    fits = torch.zeros_like(experts, dtype=torch.bool)
    for t, choices in enumerate(experts.tolist()):
        for j, e in enumerate(choices):
            fits[t, j] = room[e] > 0
            room[e] -= 1
    weights = logits.gather(1, experts).softmax(1) * fits
    (gradient,) = torch.autograd.grad((weights * c.cotangent.double()).sum(), [logits])
    dtype = c.logits.dtype
    result = [experts.masked_fill(~fits, -1), weights.detach().to(dtype)]
    return [{"result": result, "gradient of logits": gradient.to(dtype)}]


def _sizes(reports: Sequence[Report]) -> list[Report]:
    """Return what errors are relative to: the size of each number, and at least 1."""

    def size(value: Any) -> Any:
        if isinstance(value, list):
            return [size(part) for part in value]
        return value.double().abs().clamp(min=1)

    return [{key: size(value) for key, value in report.items()} for report in reports]


route = Exercise(
    signature="route(logits: Tensor, k: int, capacity: int) -> tuple[Tensor, Tensor]",
    summary="the k experts of each token and their weights; what finds its expert full is dropped",
    inputs=routed_inputs,
    world_sizes=(1,),
    adapter=routed_in_rank,
    values=Values(routed, reduced=lambda c: 100, magnitude=lambda c: _sizes(routed(c))),
)


# Tokens and experts. ----------------------------------------------------------------

#: The expert of a token, given rank, token, number of ranks and number of experts.
Pick = Callable[[int, int, int, int], int]


def _scattered(r: int, t: int, n: int, experts: int) -> int:
    return (5 * r + 3 * t + t * t // 2 + 1) % experts


def _sometimes_dropped(r: int, t: int, n: int, experts: int) -> int:
    return -1 if (t + r) % 3 == 0 else _scattered(r, t, n, experts)


def _never_on_rank_0(r: int, t: int, n: int, experts: int) -> int:
    first = experts // n
    return first + _scattered(r, t, n, experts) % (experts - first)


def _popular(r: int, t: int, n: int, experts: int) -> int:
    if t % 7 == 3:
        return -1
    return experts // 2 if t % 4 else _scattered(r, t, n, experts)


@dataclass(frozen=True)
class _ExpertLayout:
    """The tokens and experts of a case.

    Attributes:
        name: the name of the case.
        pick: which expert a token chooses.
        per_rank: the number of experts on each rank.
        tokens: how many tokens a rank has.
        width, dtype: of a token.
        backward: whether gradients are asked for.
    """

    name: str
    pick: Pick
    per_rank: int
    tokens: Callable[[int], int] = lambda r: 7
    width: int = 3
    dtype: torch.dtype = _FLOAT
    backward: bool = True


_LAYOUTS = (
    _ExpertLayout(
        "one expert a rank, which adds 100 or more, forward only", _scattered, 1,
        tokens=lambda r: 4, width=2, backward=False,
    ),
    _ExpertLayout("two experts a rank", _scattered, 2, dtype=_DOUBLE),
    _ExpertLayout("some tokens dropped", _sometimes_dropped, 1),
    _ExpertLayout(
        "ranks with different numbers of tokens, rank 0 with none, and none for its experts",
        _never_on_rank_0,
        2,
        tokens=lambda r: 3 * r,
        dtype=_DOUBLE,
    ),
    _ExpertLayout("all tokens to the last expert", lambda r, t, n, experts: experts - 1, 2),
    _ExpertLayout(
        "every token stays on its rank",
        lambda r, t, n, experts: r * (experts // n) + t % (experts // n), 2, dtype=_DOUBLE,
    ),
    _ExpertLayout("all tokens dropped", lambda r, t, n, experts: -1, 1),
    _ExpertLayout("an expert that is popular", _popular, 3, tokens=lambda r: 60, width=5),
)  # fmt: skip


def inputs(draw: Draw) -> Iterator[Case]:
    """Draw tokens, the experts that they choose, and the experts' weights."""
    for number, one in enumerate(_LAYOUTS):
        experts = draw.n * one.per_rank
        counts = [one.tokens(r) for r in draw.ranks]
        rows = [Kind(one.dtype, (count, one.width)) for count in counts]
        x = draw.per_rank(rows)
        expert = PerRank(
            torch.tensor(
                [one.pick(r, t, draw.n, experts) for t in range(counts[r])], dtype=torch.int64
            )
            for r in draw.ranks
        )
        every = [
            _readable(e, one.width) if number == 0 else _drawn(draw, one) for e in range(experts)
        ]
        chosen = set(torch.cat(list(expert)).tolist())
        yield draw.case(
            one.name,
            x=x,
            expert=expert,
            weights=PerRank(every[r * one.per_rank : (r + 1) * one.per_rank] for r in draw.ranks),
            used=PerRank(
                [
                    bool((expert[r] >= 0).any()),
                    *(r * one.per_rank + e in chosen for e in range(one.per_rank)),
                ]
                for r in draw.ranks
            ),
            cotangent=draw.per_rank(rows) if one.backward else None,
        )


def _readable(expert: int, width: int) -> list[torch.Tensor]:
    """Return the weight and bias of an expert that adds 100 times its number, from 1."""
    return [torch.eye(width), torch.full((width,), 100.0 * (expert + 1))]


def _drawn(draw: Draw, one: _ExpertLayout) -> list[torch.Tensor]:
    """Return weights and biases of an expert with one hidden layer."""
    hidden = one.width + 1
    shapes = ((hidden, one.width), (hidden,), (one.width, hidden), (one.width,))
    return [draw.tensor(Kind(one.dtype, shape)) for shape in shapes]


# The call in a rank. ----------------------------------------------------------------


def network(weights: Sequence[torch.Tensor]) -> nn.Sequential:
    """Make an expert: linear layers with these weights and biases, and tanh between them."""
    layers: list[nn.Module] = []
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        layer.weight, layer.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def parameters_of(experts: Sequence[nn.Module]) -> dict[str, nn.Parameter]:
    """Return the parameters by what a student would write: ``experts[1][0].weight``."""
    return {
        f"experts[{e}][{name.replace('.', '].')}": parameter
        for e, module in enumerate(experts)
        for name, parameter in module.named_parameters()
    }


def _number(name: str) -> int:
    """Return the number of the expert in the name of one of its parameters."""
    return int(name[len("experts[") : name.index("]")])


def through_experts(
    answer: Callable[..., Any],
    x: Any,
    expert: Any,
    weights: list[list[torch.Tensor]],
    used: list[bool],
    cotangent: Any,
) -> Report:
    """Make the experts, call the answer, and pull a gradient back through it if one is given.

    A gradient that is ``None`` counts as zero for an expert without tokens, and for ``x`` if all
    of its tokens are dropped.
    """
    experts = [network(one) for one in weights]
    if cotangent is None:
        result = answer(x, expert, experts)
        return {"result": result.detach() if isinstance(result, torch.Tensor) else result}
    named = parameters_of(experts)
    leaves = {"x": 0} | {name: place for place, name in enumerate(named, 1)}
    report = differentiate(
        mark_end(lambda x, *_: answer(x, expert, experts)), [x, *named.values()], leaves, cotangent
    )
    for name, tensor in {"x": x, **named}.items():
        needed = used[0 if name == "x" else _number(name) + 1]
        if not needed and report[f"gradient of {name}"] is None:
            report[f"gradient of {name}"] = torch.zeros_like(tensor)
    return report


# The oracle. ------------------------------------------------------------------------


def _per_rank(c: Case) -> int:
    return len(c.weights[0])


def _own(c: Case, r: int) -> slice:
    """Return the numbers of the experts of a rank."""
    return slice(r * _per_rank(c), (r + 1) * _per_rank(c))


def outcome(c: Case) -> list[Report]:
    """Return results and gradients of all ranks, worked out in one process in float64."""
    modules = [network([t.double() for t in one]) for rank in c.weights for one in rank]
    own = [x.double().requires_grad_() for x in c.x]
    x, expert = torch.cat(own), torch.cat(list(c.expert))
    y = torch.zeros_like(x)
    for e in sorted(set(expert.tolist()) - {-1}):
        at = (expert == e).nonzero().flatten()
        y = y.index_copy(0, at, modules[e](x[at]))
    results = torch.split(y, [len(part) for part in own])
    dtype = c.x[0].dtype
    reports: list[Report] = [{"result": result.detach().to(dtype)} for result in results]
    if c.cotangent is None:
        return reports
    named = [{"x": own[r], **parameters_of(modules[_own(c, r)])} for r in c.ranks]
    leaves = [leaf for one in named for leaf in one.values()]
    pairs = zip(results, c.cotangent, strict=True)
    # the zero keeps a gradient for tokens of which all are dropped
    total = sum(((a * b.double()).sum() for a, b in pairs), 0 * sum(one.sum() for one in own))
    found = iter(torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True))
    for report, one in zip(reports, named, strict=True):
        report |= {f"gradient of {name}": next(found).to(dtype) for name in one}
    return reports


def _others(c: Case, rank: int) -> torch.Tensor:
    """Return the experts on other ranks that the tokens of a rank choose, a token each."""
    expert: torch.Tensor = c.expert[rank]
    return expert[(expert >= 0) & (expert // _per_rank(c) != rank)]


def least(c: Case, expected: Sequence[Report]) -> int:
    """Return the bytes that all ranks must receive: a row from each expert elsewhere.

    It is one row only, since a rank that is sent the expert's weights can compute all rows.
    """
    rows = []
    for r in c.ranks:
        own = c.expert[r].tolist()
        rows.append([expected[r]["result"][own.index(e)] for e in set(_others(c, r).tolist())])
    return combined(c, rows)


def _rows(c: Case) -> int:
    """Return the bytes of rows that travel, there and back, in each direction of autograd."""
    moved = sum(len(_others(c, r)) for r in c.ranks)
    row = c.x[0].shape[1] * c.x[0].element_size()
    return int(moved * row * (2 if c.cotangent is None else 4))


def _counts(c: Case) -> int:
    """Return the bytes of counts that are granted."""
    return c.n * (c.n - 1) * 8 * _per_rank(c)


# What an answer shows. --------------------------------------------------------------


def _dropped_rows_only(e: Evidence) -> bool:
    """Return whether values are wrong, and in all failures only those of tokens with expert −1."""

    def rest_right(one: JudgedCase) -> bool:
        kept = [expert >= 0 for expert in one.case.expert]
        return one.diagnosis is Diagnosis.WRONG_VALUE and all(
            torch.allclose(report["result"][at], right["result"][at], rtol=1e-3, atol=1e-4)
            for report, right, at in zip(one.actual, outcome(one.case), kept, strict=True)
        )

    return all(map(rest_right, e.failed))


def _arrives_nothing(one: JudgedCase) -> bool:
    """Return whether some rank sends no row to others, or gets none from them."""
    c = one.case
    wanted = [set((_others(c, r) // _per_rank(c)).tolist()) for r in c.ranks]
    return any(not wanted[r] or not any(r in others for others in wanted) for r in c.ranks)


def _only(e: Evidence, concerned: Callable[[JudgedCase], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others of several ranks pass."""
    others = [one for one in e.passed if one.case.n > 1 and not concerned(one)]
    return bool(others) and all(map(concerned, e.failed))


expert_parallel = Exercise(
    signature="expert_parallel(x: Tensor, expert: Tensor, experts: list[nn.Module]) -> Tensor",
    summary="each token goes to the rank of its expert and comes back, with gradients",
    inputs=inputs,
    adapter=through_experts,
    values=Values(
        outcome,
        # sums over the tokens of an expert, and over its inner dimensions
        reduced=lambda c: 1000,
        magnitude=lambda c: _sizes(outcome(c)),
    ),
    traffic=TrafficRules(
        limits=(
            point(bytes_of_all("≤", lambda c: _rows(c) + _counts(c))),
            point(bytes_of_all("≥", _rows)),
        ),
        least=least,
        allowed=frozenset({"all_to_all"}),
    ),
    points=2.0,
    mistakes=(
        *evidence.BUFFER_RACES,
        Mistake(
            "Only rows with expert −1 are wrong: their result is zeros. Begin with"
            " torch.zeros_like(x); torch.empty_like(x) leaves in these rows what the memory held"
            " before.",
            when=_dropped_rows_only,
        ),
        Mistake(
            "In forward all ranks make all calls; in backward, one that gets no row or sends none"
            " leaves one out. Autograd goes back along what the result was computed from, and zeros"
            " into which nothing is put were computed from nothing: put rows in even where there"
            " are none. And where backward is yours, it makes its call for no rows as well.",
            when=lambda e: (
                e.diagnosis is Diagnosis.DEADLOCK
                and evidence.forward_has_ended(e)
                and _only(e, _arrives_nothing)
            ),
        ),
        Mistake(
            "Everything works until a rank has no row to send, or gets none: that rank leaves out"
            " a call that the others make. It takes part all the same, with an empty tensor, in"
            " backward as well.",
            when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only(e, _arrives_nothing),
        ),
    ),
)
