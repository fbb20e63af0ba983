"""Chapter 28: tokens that choose experts, and experts that live on different ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, JudgedCase, Mistake, TrafficRules, Values
from grader.course.limits import bytes_of_all, combined, point
from grader.rank.instrumentation import differentiated

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


@dataclass(frozen=True)
class _RoutingRule:
    """A way to route, right or wrong.

    Attributes:
        places: the (token, choice) pairs in the order in which they are given a place.
        softmax_over_all: whether the softmax is over all experts and not over the k.
        room: how much larger the capacity is.
        apart: whether each choice has a capacity of its own.
        weights_kept, experts_kept: what is kept of a choice that finds its expert full.
        renormalised: whether the weights that are left are divided by their sum.
        all_or_none: whether a token loses all of its choices with one.
        next_best: whether a full expert is passed over for the next best one.
        ascending: whether the worst of the k comes first.
        over_tokens: whether the softmax goes along the tokens and not along the k.
        softmax_last: whether full experts are left out before the softmax is taken.
    """

    places: Callable[[torch.Tensor], list[tuple[int, int]]] = lambda weights: [
        (t, j) for t in range(weights.shape[0]) for j in range(weights.shape[1])
    ]
    softmax_over_all: bool = False
    room: float = 0
    apart: bool = False
    weights_kept: bool = False
    experts_kept: bool = False
    renormalised: bool = False
    all_or_none: bool = False
    next_best: bool = False
    ascending: bool = False
    over_tokens: bool = False
    softmax_last: bool = False


def routed(c: Case, rule: _RoutingRule = _RoutingRule()) -> list[Report]:
    """Return what a rule gives: experts, weights, and the gradient of the logits."""
    logits = c.logits.double().requires_grad_()
    ordered = logits.detach().argsort(dim=1, descending=True, stable=True)
    experts = ordered[:, : c.k].clone()
    if rule.ascending:
        experts = experts.flip(1)
    taken: dict[tuple[int, int], int] = {}
    fits = torch.ones_like(experts, dtype=torch.bool)

    def place(expert: int, choice: int) -> bool:
        key = (expert, choice if rule.apart else 0)
        if taken.get(key, 0) >= c.capacity + rule.room:
            return False
        taken[key] = taken.get(key, 0) + 1
        return True

    chosen = logits.gather(1, experts).softmax(1).detach()
    for t, j in rule.places(chosen):
        if rule.next_best:
            tried = [e for e in ordered[t].tolist() if e not in experts[t, :j].tolist()]
            found = next((e for e in tried if place(e, j)), None)
            fits[t, j] = found is not None
            experts[t, j] = int(experts[t, j]) if found is None else found
        else:
            fits[t, j] = place(int(experts[t, j]), j)
    if rule.all_or_none:
        fits &= fits.all(1, keepdim=True)
    if rule.softmax_over_all:
        weights = logits.softmax(1).gather(1, experts)
    elif rule.softmax_last:
        weights = logits.gather(1, experts).masked_fill(~fits, -float("inf")).softmax(1)
    else:
        weights = logits.gather(1, experts).softmax(0 if rule.over_tokens else 1)
    if not rule.weights_kept:
        weights = weights * fits
    if rule.renormalised:
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-30)
    (gradient,) = torch.autograd.grad((weights * c.cotangent.double()).sum(), [logits])
    dtype = c.logits.dtype
    if not rule.experts_kept:
        experts = experts.masked_fill(~fits, -1)
    result = [experts, weights.detach().to(dtype)]
    return [{"result": result, "gradient of logits": gradient.to(dtype)}]


def _sizes(reports: Sequence[Report]) -> list[Report]:
    """Return what errors are relative to: the size of each number, and at least 1."""

    def size(value: Any) -> Any:
        if isinstance(value, list):
            return [size(part) for part in value]
        return value.double().abs().clamp(min=1)

    return [{key: size(value) for key, value in report.items()} for report in reports]


def _by_choice(weights: torch.Tensor) -> list[tuple[int, int]]:
    return [(t, j) for j in range(weights.shape[1]) for t in range(weights.shape[0])]


def _by_weight(weights: torch.Tensor) -> list[tuple[int, int]]:
    order = weights.flatten().argsort(dim=0, descending=True, stable=True).tolist()
    return [divmod(place, weights.shape[1]) for place in order]


def _backwards(weights: torch.Tensor) -> list[tuple[int, int]]:
    return _RoutingRule().places(weights)[::-1]


def _gives(**rule: Any) -> Callable[[Case], list[Report]]:
    """Return a function of what this wrong rule gives."""
    return lambda c: routed(c, _RoutingRule(**rule))


_WRITTEN_AFTERWARDS = Mistake(
    "Backward needs a result that was written into after it was computed; of a softmax, for"
    " example, the weights themselves. Make a new tensor instead: masked_fill without an"
    " underscore, or torch.where.",
    when=lambda e: e.says("modified by an inplace operation"),
)

_IN_PLACE = Mistake(
    "The arguments belong to the caller, who asks for their gradients: do not write into them. Make"
    " new tensors.",
    when=lambda e: e.says("a leaf Variable that requires grad"),
)

route = Exercise(
    signature="route(logits: Tensor, k: int, capacity: int) -> tuple[Tensor, Tensor]",
    summary="the k experts of each token and their weights; what finds its expert full is dropped",
    inputs=routed_inputs,
    world_sizes=(1,),
    adapter=routed_in_rank,
    values=Values(routed, reduced=lambda c: 100, magnitude=lambda c: _sizes(routed(c))),
    mistakes=(
        Mistake(
            "The softmax is taken over all experts. Here it is over the k chosen ones, so that the"
            " weights of a token add up to 1 before anything is dropped.",
            gives=_gives(softmax_over_all=True),
        ),
        Mistake(
            "After something is dropped, the weights that are left are made to add up to 1 again."
            " They stay as they are: the share of an expert that was full is lost.",
            gives=_gives(renormalised=True),
        ),
        Mistake(
            "The softmax is taken over what fits, so the weights that are left add up to 1, and"
            " where nothing fits they are not numbers. Take it over the k chosen logits first, and"
            " then set the weights of full experts to 0.",
            gives=_gives(softmax_last=True),
        ),
        Mistake(
            "The softmax goes along the tokens. It goes along the k choices of each token, dim=1.",
            gives=_gives(over_tokens=True),
        ),
        Mistake(
            "Places are given to all first choices, then to all second ones. Here they are given"
            " token by token, and only then by choice.",
            gives=_gives(places=_by_choice),
        ),
        Mistake(
            "Places are given by weight, the largest first. Here they are given in the order of the"
            " tokens, however large their weights are.",
            gives=_gives(places=_by_weight),
        ),
        Mistake(
            "The last tokens are served first. Places are given in the order of the tokens, from"
            " token 0.",
            gives=_gives(places=_backwards),
        ),
        Mistake(
            "An expert has room for capacity tokens, and here it gets one more or one less.",
            gives=(_gives(room=1), _gives(room=-1)),
        ),
        Mistake(
            "The capacity is ignored: every choice is kept, however full its expert is.",
            gives=_gives(room=float("inf")),
        ),
        Mistake(
            "Each column of choices has a capacity of its own. An expert has one capacity, for"
            " first, second and later choices together.",
            gives=_gives(apart=True),
        ),
        Mistake(
            "A dropped choice keeps its weight. It gets weight 0, as it gets expert −1.",
            gives=_gives(weights_kept=True),
        ),
        Mistake(
            "A dropped choice keeps its expert. It gets expert −1, as it gets weight 0.",
            gives=_gives(experts_kept=True),
        ),
        Mistake(
            "When one choice of a token is dropped, all of them are. Only the choice whose expert"
            " is full is dropped.",
            gives=_gives(all_or_none=True),
        ),
        Mistake(
            "Where an expert is full, the token goes to another one. Here the choice is dropped:"
            " expert −1, weight 0.",
            gives=_gives(next_best=True),
        ),
        Mistake(
            "The k best are in ascending order. The best expert comes first: topk sorts that way,"
            " argsort only with descending=True.",
            gives=_gives(ascending=True),
        ),
        Mistake(
            "No gradient reaches the logits, so the router would never learn: the weights are used"
            " without their history, through .tolist(), .item(), .detach(), torch.tensor or"
            " torch.no_grad(). Take them from logits by softmax, and mask those that are dropped.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_GRADIENT
                and e.actual[0]["gradient of logits"] is None
            ),
        ),
        _WRITTEN_AFTERWARDS,
        _IN_PLACE,
    ),
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


#: Text of the mark between forward and backward.
RETURNED = "forward has returned"


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
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    leaves = {"x": 0} | {name: place for place, name in enumerate(named, 1)}

    def forward(x: Any, *_: Any) -> Any:
        result = answer(x, expert, experts)
        note(RETURNED)
        return result

    report = differentiated(forward, [x, *named.values()], leaves, cotangent)
    for name, tensor in {"x": x, **named}.items():
        needed = used[0 if name == "x" else _number(name) + 1]
        if not needed and report[f"gradient of {name}"] is None:
            report[f"gradient of {name}"] = torch.zeros_like(tensor)
    return report


# The oracle, and what mistakes give. ------------------------------------------------


def _per_rank(c: Case) -> int:
    return len(c.weights[0])


def outcome(
    c: Case,
    chosen: Sequence[torch.Tensor] | None = None,
    placed: Callable[[int, torch.Tensor, torch.Tensor], torch.Tensor] = lambda rank, y, x: y,
    factor: float = 1.0,
    idle: bool = False,
) -> list[Report]:
    """Return results and gradients of all ranks, worked out in one process in float64.

    Args:
        c: the case.
        chosen: the expert of each rank's tokens; the case's own if it is not given.
        placed: what a rank makes of its results in the end, given its number, results and tokens.
        factor: what the gradient is multiplied by on each of the two ways back.
        idle: whether an expert that should work, and does not, has no gradient instead of zeros.
    """
    modules = [network([t.double() for t in one]) for rank in c.weights for one in rank]
    own = [x.double().requires_grad_() for x in c.x]
    x, expert = torch.cat(own), torch.cat(list(c.expert if chosen is None else chosen))
    y = torch.zeros_like(x)
    for e in sorted(set(expert.tolist())):
        if e >= 0:
            at = (expert == e).nonzero().flatten()
            y = y.index_copy(0, at, modules[e](x[at]))
    parts = torch.split(y, [len(part) for part in own])
    results = [placed(r, *pair) for r, pair in enumerate(zip(parts, own, strict=True))]
    dtype = c.x[0].dtype
    reports: list[Report] = [{"result": result.detach().to(dtype)} for result in results]
    if c.cotangent is None:
        return reports
    named = [parameters_of(modules[_slice(c, r)]) for r in c.ranks]
    leaves = [*own, *(p for one in named for p in one.values())]
    pairs = zip(results, c.cotangent, strict=True)
    total = sum(((a * b.double()).sum() for a, b in pairs), sum(one.sum() for one in own) * 0)
    found: Sequence[torch.Tensor | None] = torch.autograd.grad(total, leaves, allow_unused=True)
    by_leaf = {id(leaf): g for leaf, g in zip(leaves, found, strict=True)}
    for r, report in enumerate(reports):
        of_x = by_leaf[id(own[r])]
        assert of_x is not None  # the total contains every token
        report["gradient of x"] = (factor**2 * of_x).to(dtype)
        for name, p in named[r].items():
            gradient = by_leaf[id(p)]
            if gradient is None and not (idle and c.used[r][_number(name) + 1]):
                gradient = torch.zeros_like(p)
            scaled = None if gradient is None else (factor * gradient).to(dtype)
            report[f"gradient of {name}"] = scaled
    return reports


def _idle_too(
    chosen: Callable[[Case], list[torch.Tensor]],
) -> tuple[Callable[[Case], list[Report]], ...]:
    """Return what other experts for the tokens give, with both gradients of those left idle."""
    return (lambda c: outcome(c, chosen(c)), lambda c: outcome(c, chosen(c), idle=True))


def _slice(c: Case, r: int) -> slice:
    return slice(r * _per_rank(c), (r + 1) * _per_rank(c))


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


def _mapped(c: Case, other: Callable[[int, torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """Return other experts for the tokens that are not dropped."""
    return [torch.where(e >= 0, other(r, e), e) if len(e) else e for r, e in enumerate(c.expert)]


def _round_robin(c: Case) -> list[torch.Tensor]:
    return _mapped(c, lambda r, e: e % c.n * _per_rank(c) + e // c.n)


def _first_only(c: Case) -> list[torch.Tensor]:
    return _mapped(c, lambda r, e: e // _per_rank(c) * _per_rank(c))


def _stays(c: Case) -> list[torch.Tensor]:
    return _mapped(c, lambda r, e: r * _per_rank(c) + e % _per_rank(c))


def _as_if_sorted(c: Case) -> list[Report]:
    """Return the results if a rank takes what has arrived to be sorted by expert.

    It is sorted by the rank that it comes from, and by expert among the rows of one rank only.
    """
    chosen = [e.clone() for e in c.expert]
    for dst in c.ranks:
        first = dst * _per_rank(c)
        arrived = [
            (r, t)
            for r in c.ranks
            for t in c.expert[r].argsort(stable=True).tolist()
            if first <= c.expert[r][t] < first + _per_rank(c)
        ]
        block = sorted(int(c.expert[r][t]) for r, t in arrived)
        for (r, t), e in zip(arrived, block, strict=True):
            chosen[r][t] = e
    return outcome(c, chosen)


def _order(c: Case, r: int) -> torch.Tensor:
    """Return the tokens of a rank sorted by expert.

    Raises:
        ValueError: some are dropped, so that there is no order of all of them.
    """
    expert: torch.Tensor = c.expert[r]
    if (expert < 0).any():
        raise ValueError("some tokens are dropped")
    return expert.argsort(stable=True)


def _left_sorted(c: Case) -> list[Report]:
    return outcome(c, placed=lambda r, y, x: y[_order(c, r)])


def _sorted_twice(c: Case) -> list[Report]:
    return outcome(c, placed=lambda r, y, x: y[_order(c, r)][_order(c, r)])


def _dropped_kept(c: Case) -> list[Report]:
    return outcome(c, placed=lambda r, y, x: y + x * (c.expert[r] < 0)[:, None])


def _dropped_copied(c: Case) -> list[Report]:
    """Return the same, but without the gradients of the rows that are kept."""
    return outcome(c, placed=lambda r, y, x: y + x.detach() * (c.expert[r] < 0)[:, None])


def _dropped_to_last(c: Case) -> list[Report]:
    last = c.n * _per_rank(c) - 1
    return outcome(c, [torch.where(e < 0, last, e) for e in c.expert])


def _dropped_to_first(c: Case) -> list[Report]:
    return outcome(c, [e.clamp(min=0) for e in c.expert])


# What an answer shows. --------------------------------------------------------------


def _gradients(e: Evidence, of_x: bool) -> list[tuple[Any, bool]]:
    """Return the gradients of the first failure, of x or else of experts, that are not zero.

    With each comes whether it is missing.
    """
    want = outcome(e.case)
    return [
        (report[key], report[key] is None)
        for right, report in zip(want, e.actual, strict=True)
        for key in right
        if key.startswith("gradient of ") and (key == "gradient of x") == of_x and right[key].any()
    ]


def _missing(e: Evidence, of_x: bool) -> bool:
    """Return whether none of these gradients came back, though all of them should."""
    found = _gradients(e, of_x)
    return (
        e.diagnosis is Diagnosis.WRONG_GRADIENT
        and bool(found)
        and all(missing for _, missing in found)
    )


#: How an answer calls a torch.autograd.Function, and what cuts a tensor off from its history.
_WRAPPED = r"\.apply\("
_CUTS = r"\.detach\(|\.data\b|no_grad\("


def _no_gradient(e: Evidence) -> bool:
    return _missing(e, of_x=True) and _missing(e, of_x=False)


def _dropped_rows_only(e: Evidence) -> bool:
    """Return whether values are wrong, and in all failures only those of tokens with expert −1."""

    def rest_right(one: JudgedCase) -> bool:
        kept = [expert >= 0 for expert in one.case.expert]
        return one.diagnosis is Diagnosis.WRONG_VALUE and all(
            torch.allclose(report["result"][at], right["result"][at], rtol=1e-3, atol=1e-4)
            for report, right, at in zip(one.actual, outcome(one.case), kept, strict=True)
        )

    return all(map(rest_right, e.failed))


def _divided(c: Case) -> list[Report]:
    """Return the results if backward divides by n each time that a gradient travels."""
    return outcome(c, factor=1 / c.n)


def _arrives_nothing(one: JudgedCase) -> bool:
    """Return whether some rank sends no row to others, or gets none from them."""
    c = one.case
    wanted = [set((_others(c, r) // _per_rank(c)).tolist()) for r in c.ranks]
    return any(not wanted[r] or not any(r in others for others in wanted) for r in c.ranks)


def _only(e: Evidence, concerned: Callable[[JudgedCase], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others of several ranks pass."""
    others = [one for one in e.passed if one.case.n > 1 and not concerned(one)]
    return bool(others) and all(map(concerned, e.failed))


def _global_numbers(e: Evidence) -> bool:
    """Return whether a list has too few entries on several ranks, and enough on one."""
    alone = [one for one in e.judged if one.case.n == 1]
    return (
        e.says("list index out of range")
        and e.written(r"\bexperts\[")
        and bool(alone)
        and all(one.passed for one in alone)
    )


def _backward_counts(e: Evidence) -> bool:
    """Return whether a call has wrong counts after a rank has returned from forward.

    That rank has received from all others, so their calls in forward are made, too.
    """
    returned = any(mark.text == RETURNED for marks in e.trace.marks for mark in marks)
    wrong = e.diagnosis is Diagnosis.SIZE_MISMATCH or e.says("split sizes of all_to_all")
    return wrong and returned and e.case.n > 1


def _over(e: Evidence) -> list[tuple[JudgedCase, float]]:
    """Return the cases in which too many bytes are sent, and by how many more than rows need."""
    return [
        (one, one.limit.measured - _rows(one.case))
        for one in e.failed
        if one.limit is not None and one.diagnosis is Diagnosis.TOO_MANY_BYTES
    ]


def _counts_again(e: Evidence) -> bool:
    """Return whether the rest is a whole number of counts: 2, 3 or 4 times as many as are due."""
    over = _over(e)
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and all(
        rest in (2 * _counts(one.case), 3 * _counts(one.case), 4 * _counts(one.case))
        for one, rest in over
    )


def _dropped_travel(e: Evidence) -> bool:
    """Return whether too much is sent in just those cases in which tokens are dropped."""
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and _only(
        e, lambda one: any(bool((expert < 0).any()) for expert in one.case.expert)
    )


_LAST_HINT = (
    "This is the whole answer:\n"
    "    class AllToAll(torch.autograd.Function):\n"
    "        @staticmethod\n"
    "        def forward(ctx, rows, sends, receives):\n"
    "            ctx.counts = sends, receives\n"
    "            out = rows.new_empty(sum(receives), *rows.shape[1:])\n"
    "            dist.all_to_all_single(out, rows.contiguous(), receives, sends)\n"
    "            return out\n"
    "\n"
    "        @staticmethod\n"
    "        def backward(ctx, grad):\n"
    "            sends, receives = ctx.counts\n"
    "            return AllToAll.apply(grad, receives, sends), None, None\n"
    "\n"
    "    def expert_parallel(x, expert, experts):\n"
    "        n = dist.get_world_size()\n"
    "        kept = (expert >= 0).nonzero().flatten()\n"
    "        order = kept[expert[kept].argsort(stable=True)]\n"
    "        counts = expert[kept].bincount(minlength=n * len(experts))\n"
    "        arriving = torch.empty_like(counts)\n"
    "        dist.all_to_all_single(arriving, counts)\n"
    "        sends = counts.view(n, -1).sum(1).tolist()\n"
    "        receives = arriving.view(n, -1).sum(1).tolist()\n"
    "        arrived = AllToAll.apply(x[order], sends, receives)\n"
    "        local = torch.arange(len(experts)).repeat(n).repeat_interleave(arriving)\n"
    "        worked = torch.zeros_like(arrived)\n"
    "        for e, network in enumerate(experts):\n"
    "            at = (local == e).nonzero().flatten()\n"
    "            worked = worked.index_copy(0, at, network(arrived[at]))\n"
    "        back = AllToAll.apply(worked, receives, sends)\n"
    "        return torch.zeros_like(x).index_copy(0, order, back)"
)

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
        _WRITTEN_AFTERWARDS,
        _IN_PLACE,
        Mistake(
            "The results are in the order in which they were sent, sorted by expert. Put result i"
            " into the place of token order[i]: torch.zeros_like(x).index_copy(0, order, back).",
            gives=_left_sorted,
        ),
        Mistake(
            "The sorting is done a second time instead of undone. back[i] is the result of token"
            " order[i], so it goes to place order[i]: result[order] = back, not back[order].",
            gives=_sorted_twice,
        ),
        Mistake(
            "Experts are dealt out to ranks in turn here. Expert e lives on rank e // len(experts),"
            " as number e % len(experts) of that rank.",
            gives=_idle_too(_round_robin),
        ),
        Mistake(
            "On each rank the first expert works on all rows. Row by row, it is number"
            " expert % len(experts) of the rank that the row is sent to.",
            gives=_idle_too(_first_only),
        ),
        Mistake(
            "Every rank uses its own experts for its own tokens, as if all ranks had the same ones."
            " A token has to travel to the rank of its expert.",
            gives=_idle_too(_stays),
        ),
        Mistake(
            "What has arrived is cut into blocks as if it were sorted by expert. It is sorted by"
            " the rank that it comes from, and by expert only among the rows of one rank: the"
            " counts that arrived say which row is for which expert.",
            gives=_as_if_sorted,
        ),
        Mistake(
            "A token with expert −1 comes out as it went in. Its result is zeros; the layer around"
            " this one adds the token itself.",
            gives=(_dropped_kept, _dropped_copied),
        ),
        Mistake(
            "A token with expert −1 is worked on by an expert: in Python, −1 is the last one."
            " Leave these tokens out; their result is zeros.",
            gives=_dropped_to_last,
        ),
        Mistake(
            "A token with expert −1 is worked on by expert 0. Leave these tokens out; their result"
            " is zeros.",
            gives=_dropped_to_first,
        ),
        Mistake(
            "Only rows with expert −1 are wrong: their result is zeros. Begin with"
            " torch.zeros_like(x); torch.empty_like(x) leaves in these rows what the memory held"
            " before.",
            when=_dropped_rows_only,
        ),
        Mistake(
            "Gradients are divided by n on their way back. Nothing is averaged here: a gradient"
            " travels to the rank that its row came from, as it is.",
            gives=_divided,
        ),
        Mistake(
            "No gradient comes back at all: dist.all_to_all_single fills a tensor that autograd"
            " knows nothing about, and the result hangs on the last such tensor. Call it in the"
            " forward of a torch.autograd.Function, whose backward sends the gradients the other"
            " way.",
            when=lambda e: _no_gradient(e) and not e.written(_WRAPPED),
        ),
        Mistake(
            "No gradient comes back at all, of x or of the experts. What passes through .detach(),"
            " .data or torch.no_grad() loses its history: look where your code uses them.",
            when=lambda e: _no_gradient(e) and e.written(_WRAPPED) and e.written(_CUTS),
        ),
        Mistake(
            "The experts get gradients, and x gets none: autograd does not see how the rows came"
            " to the experts. The way there needs a backward, too.",
            when=lambda e: _missing(e, of_x=True),
        ),
        Mistake(
            "backward returns one gradient for each argument of forward, in that order, and None"
            " for those that are not tensors.",
            when=lambda e: e.says("incorrect number of gradients"),
        ),
        Mistake(
            "The gradient that backward returns has as many rows as forward was given: it is sent"
            " the other way, with the two lists of counts exchanged.",
            when=lambda e: e.says("invalid gradient"),
        ),
        Mistake(
            "Forward works, and backward has the wrong counts. There the two lists change places:"
            " as many gradients leave a rank as rows arrived at it.",
            when=_backward_counts,
        ),
        Mistake(
            "all_to_all_single takes the split sizes of its output first: how many rows come from"
            " each rank, and then how many go to each. On the way back the two lists change"
            " places.",
            when=lambda e: e.says("split sizes of all_to_all are"),
        ),
        Mistake(
            "Split sizes are lists of Python numbers: counts.view(n, -1).sum(1).tolist().",
            when=lambda e: e.says("are a tensor"),
        ),
        Mistake(
            "What a rank keeps for itself is counted differently on its two sides. The counts are"
            " in the order of the experts, len(experts) for each rank, so counts.view(n,"
            " -1).sum(1) adds up those of each rank.",
            when=lambda e: e.says("gives itself") and e.written(r"\.view\(|reshape\("),
        ),
        Mistake(
            "In a list, gloo takes tensors of one size only. dist.all_to_all_single takes a tensor"
            " and two lists of counts, for rows that arrive and rows that leave.",
            when=lambda e: e.says("needs tensors of one size"),
        ),
        Mistake(
            "Two dtypes meet there. Room for rows has the dtype of the rows: x.new_empty(shape) and"
            " torch.empty_like(x) have it, torch.empty(shape) alone makes float32.",
            when=lambda e: any(
                e.says(words) for words in ("dtype", "scalar type", "same data type")
            ),
        ),
        Mistake(
            "bincount takes no negative numbers, and −1 marks a token that was dropped: leave"
            " those tokens out first.",
            when=lambda e: e.says("bincount"),
        ),
        Mistake(
            "experts holds the rank's own experts only, and expert is a number among all of them:"
            " expert e is experts[e % len(experts)] on rank e // len(experts).",
            when=_global_numbers,
        ),
        Mistake(
            "Everything works until a rank has no row to send, or gets none: that rank leaves out"
            " a call that the others make. It takes part all the same, with an empty tensor, in"
            " backward as well.",
            when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only(e, _arrives_nothing),
        ),
        Mistake(
            "The rows with expert −1 travel. They are zeros in any case: take them out before"
            " anything is counted or sent.",
            when=_dropped_travel,
        ),
        Mistake(
            "The rows are as many as they should be; it is the counts that travel more than once."
            " As many rows as came from a rank go back to it, and gradients take the same way:"
            " exchange the counts once, and keep both lists.",
            when=_counts_again,
        ),
    ),
)
