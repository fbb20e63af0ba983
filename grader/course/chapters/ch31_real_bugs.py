"""Chapter 31: bugs that people have reported in public, each in its smallest program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from grader.course.chapters import evidence
from grader.exercise.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    PerRank,
    kinds,
    magnitude,
    nbytes,
    reduced,
)
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.groups import (
    NO_GROUP,
    GroupOfRanks,
    group_from_data,
    group_of,
    never_connected,
)
from grader.exercise.limits import (
    bytes_of_one,
    calls,
    combined,
    hangs_on_nccl,
    messages,
    moved,
    neighbours_only,
    point,
    rounds,
    sent_elements,
)
from grader.instruments import group_as_data
from headcount.core.verdict import Diagnosis

# Ranks with different numbers of batches. -------------------------------------------


class _TwoExperts(nn.Module):
    """Two experts, of which each batch goes through the one that its first number chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.experts[int(x[0, 0] > 0)]
        return chosen(torch.tanh(self.first(x)))  # type: ignore[no-any-return]


def _frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    module[0].weight.requires_grad_(False)
    return module


#: The networks, by name; each takes rows of three numbers.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(3, 2),
    "two layers": lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
    "frozen weights": _frozen,
    "experts": _TwoExperts,
}

#: An upper bound on the roundings in a weight of these networks.
ROUNDINGS = 1000


def _counts(n: int) -> Iterator[tuple[str, str, torch.dtype, list[int]]]:
    """Yield a name, a network, a dtype and every rank's number of batches."""
    single, double, last = torch.float32, torch.float64, n - 1
    yield "rank r has r + 1 batches", "one layer", double, [r + 1 for r in range(n)]
    yield "rank r has r batches", "two layers", single, list(range(n))
    yield "the last rank has none", "two layers", double, [last - r for r in range(n)]
    yield "all have two", "two layers", single, [2] * n
    yield "one has all", "frozen weights", double, [3 * (r == n // 2) for r in range(n)]
    yield "one has one more", "two layers", double, [2 + (r == last // 2) for r in range(n)]
    yield "experts", "experts", double, [3 - r % 3 for r in range(n)]
    yield "no batch at all", "one layer", single, [0] * n


def uneven(draw: Draw) -> Iterator[Case]:
    """Draw networks and batches of up to three rows; one without rows is a batch as well."""
    for i, (name, architecture, dtype, counts) in enumerate(_counts(draw.n)):
        kinds = [Kind(dtype, tuple(p.shape)) for p in NETWORKS[architecture]().parameters()]
        state = [draw.tensor(kind) for kind in kinds]
        least = 1 if architecture == "experts" else 0
        batches = [
            [
                draw.tensor(Kind(dtype, ((r + step + 2) % (4 - least) + least, 3)))
                for step in range(count)
            ]
            for r, count in enumerate(counts)
        ]
        if i == 0:  # weights that show the steps: digit r comes from rank r
            state = [torch.zeros_like(one) for one in state]
            batches = [
                [torch.full((1, 3), 10.0**r, dtype=dtype) for _ in mine]
                for r, mine in enumerate(batches)
            ]
        yield draw.case(
            name,
            architecture=architecture,
            dtype=str(dtype).removeprefix("torch."),
            state=state,
            batches=PerRank(batches),
            lr=(1.0, 0.5, 0.125)[i % 3],
        )


def network_of(architecture: str, dtype: str, state: Sequence[torch.Tensor]) -> nn.Module:
    """Make a network whose parameters hold ``state``, in their order."""
    module = NETWORKS[architecture]().to(getattr(torch, dtype))
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


def train_in_rank(
    answer: Callable[[nn.Module, list[torch.Tensor], float], Any],
    architecture: str,
    dtype: str,
    state: list[torch.Tensor],
    batches: list[torch.Tensor],
    lr: float,
) -> dict[str, Any]:
    """Let the answer train this rank's network, and report its steps and the weights."""
    module = network_of(architecture, dtype, state)
    steps = answer(module, batches, lr)
    return {"steps": steps, **{name: p.detach() for name, p in module.named_parameters()}}


def _trained(c: Case, sizes: bool = False) -> list[dict[str, Any]]:
    """Return every rank's report; with ``sizes`` bounds on the numbers that weights are made of."""
    module = network_of(c.architecture, "float64", c.state)
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    size = {name: p.detach().abs() for name, p in module.named_parameters()}
    steps = max(map(len, c.batches))
    for step in range(steps):
        batches = [mine[step].double() for mine in c.batches if step < len(mine)]
        grads = [_gradients(module, batch) for batch in batches]
        with torch.no_grad():
            for name, p in trained.items():
                p.sub_(torch.stack([one[name] for one in grads]).mean(0), alpha=c.lr)
                size[name] += c.lr * sum(one[name].abs() + 1 for one in grads)
    held = {name: p.detach().to(getattr(torch, c.dtype)) for name, p in module.named_parameters()}
    return [{"steps": steps, **(size if sizes else held)}] * c.n


def _gradients(module: nn.Module, batch: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradients of the loss on one batch; zeros where it has no path to a parameter."""
    module.zero_grad()
    module(batch).sum().backward()
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in module.named_parameters()
    }


def _lacks_gradients(c: Case) -> bool:
    """Return whether some rank has no gradient of some parameter in some step."""
    return c.architecture in ("frozen weights", "experts") or len(set(map(len, c.batches))) > 1


def _no_gradient(e: Evidence) -> bool:
    """Return whether a None is taken for a tensor just where gradients are missing."""
    trained = any(any(one.case.batches) for one in e.passed if one.limit is None)
    return (
        e.raised("TypeError", "AttributeError")
        and trained
        and all(_lacks_gradients(one.case) for one in e.failed)
    )


def _watched(e: Evidence) -> bool:
    """Return whether a step fails, and autograd is never told not to watch."""
    spared = e.calls("no_grad", "inference_mode", "set_grad_enabled", "detach", "step")
    return (
        e.raised("RuntimeError")
        and bool(e.source)
        and not (spared or e.written(r"\.data\b|no_grad"))
        and all(any(one.case.batches) for one in e.failed)
    )


train_uneven = Exercise(
    signature="train_uneven(module: nn.Module, batches: list[Tensor], lr: float) -> int",
    summary="SGD with the mean gradient of the ranks that still have a batch; returns the steps",
    inputs=uneven,
    adapter=train_in_rank,
    values=Values(
        _trained,
        reduced=lambda c: ROUNDINGS,
        magnitude=lambda c: _trained(c, sizes=True),
        agree=True,
    ),
    traffic=TrafficRules(allowed=frozenset({"all_reduce"})),
    mistakes=(
        Mistake(
            "p.grad is None on a rank without a batch, where a batch does not use the parameter,"
            " and where the parameter is frozen.",
            when=_no_gradient,
        ),
        Mistake(
            "Does this line change a parameter in place? Autograd watches p, and refuses that: make"
            " the step under torch.no_grad().",
            when=_watched,
        ),
    ),
)


# A group for one's own pair. --------------------------------------------------------


def _pairings(n: int) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield lists of disjoint pairs; with an odd number of ranks the one in the middle has none.

    The cases of a world follow each other in the same processes, and with
    ``use_local_synchronization`` the members of a new group meet only if they have made as many
    groups before (pytorch#173608).  So whenever two ranks form a pair, both have had as many.
    """
    ranks = [r for r in range(n) if n % 2 == 0 or r != n // 2]
    half = len(ranks) // 2
    if half:
        yield "first and last", list(zip(ranks[:half], ranks[: -half - 1 : -1], strict=True))
        yield "neighbours, the last first", list(zip(ranks[::-2], ranks[-2::-2], strict=True))
    if half > 1:
        pair, rest = (ranks[-1], ranks[1]), [ranks[0], *ranks[2:-1]]
        yield "one pair", [pair]
        yield "all but that pair", list(zip(rest[: half - 1], rest[half - 1 :], strict=True))
    yield "no pair", []


def group_in_rank(answer: Callable[[Any], Any], pairs: list[tuple[int, int]]) -> Any:
    """Make the group, and report it by its ranks."""
    return group_as_data(answer([(first, second) for first, second in pairs]))


def _group_or_none(c: Case, data: Any) -> Any:
    """Return the group that a rank has, or that it has none.

    None is no wrong type where others have groups; where nobody has one it is what a function
    returns that does nothing.
    """
    found = group_from_data(data)
    return NO_GROUP if found is None and c.pairs else found


def _own_groups(c: Case) -> list[GroupOfRanks | None]:
    own = {rank: group_of(sorted(pair)) for pair in c.pairs for rank in pair}
    return [own.get(rank, NO_GROUP if c.pairs else None) for rank in c.ranks]


def _returns_none(e: Evidence) -> bool:
    """Return whether some ranks of pairs return None, and all others what they should."""
    right = _own_groups(e.case)
    wrong = [rank for rank, held in enumerate(e.actual) if held != right[rank]]
    return bool(wrong) and all(e.actual[rank] == NO_GROUP for rank in wrong)


pair_group = Exercise(
    signature="pair_group(pairs: list[tuple[int, int]]) -> dist.ProcessGroup | None",
    summary="the group of one's own pair, None without one",
    inputs=lambda draw: (draw.case(name, pairs=pairs) for name, pairs in _pairings(draw.n)),
    adapter=group_in_rank,
    values=Values(_own_groups, facts=_group_or_none),
    traffic=TrafficRules(
        allowed=frozenset({"new_group"}),
        proof=never_connected(lambda c: [sorted(pair) for pair in c.pairs]),
    ),
    mistakes=(
        Mistake(
            "A pair of ranks is not a group yet. dist.new_group(pair) makes a group of it.",
            when=lambda e: any(isinstance(one, (list, tuple)) for one in e.actual),
        ),
        Mistake(
            "new_group returns −100 (dist.GroupMember.NON_GROUP_MEMBER) on a rank that is not in"
            " the group. Keep what it returns only where this rank is in the pair.",
            when=lambda e: any(type(one) is int for one in e.actual),
        ),
        Mistake(
            "pair_group never returns anything: a function without return gives None. End it with"
            " return and the group.",
            when=lambda e: _returns_none(e) and not any(part.returns for part in e.source[:1]),
        ),
        Mistake(
            "A rank that is in a pair returns None. Both ranks of a pair return its group.",
            when=_returns_none,
        ),
    ),
)


# Tensors with different numbers of rows. --------------------------------------------


def _ragged(n: int) -> Iterator[tuple[str, torch.dtype, list[int], tuple[int, ...]]]:
    """Yield a name, a dtype, every rank's number of rows and the shape of a row."""
    double, single, last = torch.float64, torch.float32, n - 1
    yield "rank r has r + 1 rows", torch.int64, [r + 1 for r in range(n)], (2,)
    yield "rank r has r rows", double, list(range(n)), (3,)
    yield "the last rank has none", single, [2 * (last - r) for r in range(n)], ()
    yield "all have two rows", torch.bfloat16, [2] * n, (2, 3)
    yield "one has all rows", single, [7 * (r == n // 2) for r in range(n)], (4,)
    yield "one has one more", torch.int64, [3 + (r == last // 2) for r in range(n)], ()
    yield "as many numbers in other rows", double, [2 + r % 2 for r in range(n)], (1, 2)
    yield "no rows at all", single, [0] * n, (5,)
    # more than one byte can count
    yield "one has 300 rows", torch.int64, [300 if r == n // 2 else r % 2 for r in range(n)], ()


def rows(draw: Draw) -> Iterator[Case]:
    """Draw a tensor for every rank; they differ in their number of rows."""
    for name, dtype, counts, row in _ragged(draw.n):
        shapes = [(count, *row) for count in counts]
        yield draw.case(
            name, x=draw.per_rank([Kind(dtype, shape, special=True) for shape in shapes])
        )


gather_ragged = Exercise(
    signature="gather_ragged(x: Tensor) -> list[Tensor]",
    summary="all ranks' x in rank order; they differ in their number of rows",
    inputs=rows,
    values=Values(lambda c: [list(c.x)] * c.n),
    traffic=TrafficRules(
        limits=(bytes_of_one("≤", lambda c: (c.n - 1) * (max(map(nbytes, c.x)) + 8)),),
        least=moved,
        allowed=frozenset({"all_gather"}),
    ),
    mistakes=(
        Mistake(
            "all_gather_object pickles what it sends, and pads all pickles to the longest. Gather"
            " tensors: first the numbers of rows, then the rows.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and e.calls("all_gather_object"),
        ),
        Mistake(
            "Only the case with many rows goes wrong. Does the dtype in which the numbers of rows"
            " travel have room for 300?",
            # an int8 or uint8 makes 44 of it, or a limit of its own
            when=lambda e: all(
                {len(x) for held in one.actual or [[]] for x in held} - set(map(len, one.case.x))
                <= {44, 127, 255}
                and max(map(len, one.case.x)) > 255
                for one in e.failed
            ),
        ),
    ),
)


# Shards under names, in other orders. -----------------------------------------------


def _states(n: int) -> Iterator[tuple[str, dict[str, Kind]]]:
    """Yield shards by name; those of one shape come first, where a wrong order breaks nothing."""
    number, single, double = torch.int64, torch.float32, torch.float64
    alike = ("layers.1.weight", "head.weight", "layers.0.weight", "embed.weight")
    yield "four of one shape", dict.fromkeys(alike, Kind(number, (2, 3)))
    yield (
        "pairs of one shape",
        {
            "head.weight": Kind(single, (3, 4)),
            "norm.bias": Kind(single, (4,)),
            "embed.weight": Kind(single, (3, 4)),
            "norm.weight": Kind(single, (4,)),
        },
    )
    yield (
        "shapes and dtypes that differ",
        {
            "step": Kind(number, (1,)),
            "weight": Kind(double, (n + 1, 4), special=True),
            "exp_avg": Kind(single, (2, 2, 3)),
            "scale": Kind(torch.bfloat16, (5,)),
        },
    )
    yield "one has no rows", {"b": Kind(double, (0, 3)), "a": Kind(double, (2, 3))}
    yield "a single name", {"weight": Kind(single, (4, 1))}
    yield "no name", {}


def shards(draw: Draw) -> Iterator[Case]:
    """Draw every rank's shards; each rank has the names in another order, and none is sorted."""
    for i, (name, whole) in enumerate(_states(draw.n)):
        columns = {key: draw.per_rank(kind) for key, kind in whole.items()}
        orders = [list(whole)[::-1] if r % 2 else list(whole) for r in draw.ranks]
        turned = [
            order[r // 2 % len(order) :] + order[: r // 2 % len(order)] if order else []
            for r, order in enumerate(orders)
        ]
        yield draw.case(
            f"{name}, to rank {(draw.n - 1 + i) % draw.n}",
            shards=PerRank({key: columns[key][r] for key in turned[r]} for r in draw.ranks),
            dst=(draw.n - 1 + i) % draw.n,
        )


def _joined(c: Case) -> dict[str, torch.Tensor]:
    return {key: torch.cat([mine[key] for mine in c.shards]) for key in c.shards[0]}


full_state = Exercise(
    signature="full_state(shards: dict[str, Tensor], dst: int) -> dict[str, Tensor] | None",
    summary="every tensor whole on dst, None elsewhere; names come in other orders",
    inputs=shards,
    values=Values(lambda c: [_joined(c) if r == c.dst else None for r in c.ranks]),
    traffic=TrafficRules(least=moved, allowed=frozenset({"gather", "all_gather"})),
)


# Metrics that not every rank has logged. --------------------------------------------

#: A metric is a measurement: single precision, in which a tensor of one number comes unless its
#: dtype is given, is good enough for it.
_SINGLE = 1e-5

#: Which ranks log which names, in the order in which they do, by the name of the case.
_LOGGED: Mapping[str, Callable[[int, int], Sequence[str]]] = {
    "all ranks log loss and accuracy": lambda r, n: ("loss", "accuracy"),
    "two names on each rank, the last rank's second differs": lambda r, n: (
        ("loss", "accuracy") if r < n - 1 else ("loss", "perplexity")
    ),
    "rank 0 logs one more name": lambda r, n: ("loss", "lr") if r == 0 else ("loss",),
    "the last rank logs one more name": lambda r, n: ("loss", "lr") if r == n - 1 else ("loss",),
    "the same names, in another order on odd ranks": lambda r, n: ("accuracy", "loss", "norm")[
        :: -1 if r % 2 else 1
    ],
    "a name of each rank's own, and a common one": lambda r, n: (f"loss of task {r}", "loss"),
    "rank 0 logs nothing": lambda r, n: () if r == 0 else ("loss", "accuracy"),
    "the last rank logs nothing": lambda r, n: () if r == n - 1 else ("loss", "accuracy"),
    "eight names, each on every second rank": lambda r, n: tuple(
        f"loss/{name}" for i, name in enumerate("abcdefgh") if (i + r) % 2 == 0
    ),
    "no rank logs anything": lambda r, n: (),
}


def _metrics(draw: Draw) -> Iterator[Case]:
    for case, names in _LOGGED.items():
        drawn = draw.per_rank(Kind(torch.float64, (8,)), "AVG")
        logged = PerRank(
            dict(zip(names(r, draw.n), drawn[r].tolist(), strict=False)) for r in draw.ranks
        )
        yield draw.case(case, metrics=logged)
    # 0 is a value like any other, and so are NaN and infinity
    for words, values in (("0", (0.0,)), ("nan and inf", (math.nan, math.inf))):
        even = dict(zip(("errors", "norm"), values, strict=False))
        logged = PerRank(dict.fromkeys(even, 6.0) if r % 2 else even for r in draw.ranks)
        yield draw.case(f"every second rank logs {words}", metrics=logged)


def _means(c: Case, size: Callable[[float], float] = float) -> list[dict[str, float]]:
    """Return the mean of each name over the ranks that have logged it, once for every rank."""
    logged: dict[str, list[float]] = {}
    for metrics in c.metrics:
        for name, value in metrics.items():
            logged.setdefault(name, []).append(size(value))
    return [{name: sum(values) / len(values) for name, values in logged.items()}] * c.n


def _names_differ(c: Case) -> bool:
    """Return whether some rank has logged a name that another has not."""
    return len({frozenset(metrics) for metrics in c.metrics}) > 1


def _logs_differ(c: Case) -> bool:
    """Return whether ranks have logged other names, or the same in another order."""
    return len({tuple(metrics) for metrics in c.metrics}) > 1


mean_metrics = Exercise(
    signature="mean_metrics(metrics: dict[str, float]) -> dict[str, float]",
    summary="the mean of each metric over the ranks that have logged it, the same on all",
    inputs=_metrics,
    values=Values(
        _means,
        magnitude=lambda c: _means(c, abs),
        relative=_SINGLE,
        agree=True,
    ),
    # all_gather_object sends pickles, by all_gather
    traffic=TrafficRules(allowed=frozenset({"all_gather", "all_reduce"})),
    mistakes=(
        Mistake(
            "0 is a value as well: ask `name in metrics`, and not whether the value is true.",
            when=lambda e: e.raised("ZeroDivisionError") and "errors" in e.case.metrics[0],
        ),
        Mistake(
            "Not every rank has every name, so metrics[name] fails on some: use metrics.get, or ask"
            " `name in metrics` first.",
            when=lambda e: (
                e.raised("KeyError") and all(_names_differ(one.case) for one in e.failed)
            ),
        ),
        Mistake(
            "The dictionary in this line does not have this name yet. Begin with 0 where a name"
            " comes for the first time: totals.get(name, 0.0).",
            when=lambda e: e.raised("KeyError") and not _names_differ(e.case),
        ),
        Mistake(
            "Ranks that have logged other names, or none, make other calls, or more of them. Before"
            " the first all_reduce all ranks have to know the names of all: that is what"
            " all_gather_object is for.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.DEADLOCK, Diagnosis.ORDER_MISMATCH)
                and all(_logs_differ(one.case) for one in e.failed)
            ),
        ),
        Mistake(
            "A collective needs a call of every rank, and some rank does not make it, although all"
            " have logged the same here. Let all ranks make the call, and decide after it.",
            when=lambda e: (
                e.diagnosis is Diagnosis.DEADLOCK
                and e.failure is not None
                and all(wait.call not in ("send", "recv") for wait in e.failure.waits)
                and not _logs_differ(e.case)
            ),
        ),
    ),
)


# A chain of stages. -------------------------------------------------------------------


def _pairs_of_tensors(draw: Draw) -> Iterator[Case]:
    every = kinds(draw.n)
    # what goes forward and what goes backward have other shapes and dtypes
    for kind, other in zip(every, (*every[1:], every[0]), strict=True):
        yield draw.case(
            f"{kind} forward, {other} backward",
            forward=draw.per_rank(kind),
            backward=draw.per_rank(other),
        )


def _from_both_sides(c: Case) -> list[tuple[torch.Tensor | None, torch.Tensor | None]]:
    return [
        (c.forward[r - 1] if r > 0 else None, c.backward[r + 1] if r < c.n - 1 else None)
        for r in c.ranks
    ]


def _hangs_on_nccl_alone(one: JudgedCase) -> bool:
    """Return whether a run ended well, and NCCL's rules alone find a fault in it."""
    return one.failure is None and one.diagnosis is Diagnosis.DEADLOCK


chain_exchange = Exercise(
    signature="chain_exchange(forward: Tensor, backward: Tensor)"
    " -> tuple[Tensor | None, Tensor | None]",
    summary="what comes from the stage before and from the stage after, at the same time",
    inputs=_pairs_of_tensors,
    values=Values(_from_both_sides),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: 2 * (c.n - 1)),
            point(rounds("≤", lambda c: 2)),
        ),
        least=moved,
        proof=hangs_on_nccl,
    ),
    point=_hangs_on_nccl_alone,
    mistakes=(
        Mistake(
            "The chain has two ends: rank 0 has no rank before it, and the last has none after it."
            " Make neither a send nor a receive for a neighbour that is not there.",
            # on two ranks, the two ends are neighbours
            when=lambda e: any(
                abs(op.peer - op.rank) > 1
                for one in e.failed
                for operations in one.trace.operations
                for op in operations
                if op.is_message
            ),
        ),
        *evidence.BUFFER_RACES,
        Mistake(
            "What goes forward and what goes backward need not be alike. To the rank after, send"
            " forward, and receive from it into torch.empty_like(backward). To the rank before,"
            " send backward, not forward, and receive from it into torch.empty_like(forward).",
            when=lambda e: e.diagnosis in (Diagnosis.SIZE_MISMATCH, Diagnosis.DTYPE_MISMATCH),
        ),
        Mistake(
            "Both neighbours send before they receive: start all of them, and wait afterwards.",
            when=evidence.all_send,
        ),
    ),
)


# When to stop. -------------------------------------------------------------------------


def _losses(draw: Draw) -> Iterator[Case]:
    n = draw.n
    below = (1 - n, *[1] * (n - 1))  # the first far below the mean, the others a little above
    above = tuple(-one for one in below)
    same = (0,) * n
    # by how far each loss is off the mean, and the mean off the best so far
    cases = (
        ("all losses are better than best", same, -0.5),
        ("the mean is better, though {} alone is", below, -0.5),
        ("the mean is no better, though all but {} are", above, 0.5),
        ("no loss is better than best", same, 0.5),
        ("the mean is no better, though {} is", below, 0.5),
        ("the mean is better, though {} is not", above, -0.5),
        ("the mean is a little better, though {} alone is", below, -0.25),
        ("the mean is a little worse, though all but {} are better", above, 0.25),
        ("the mean is as good as best", above, 0.0),
        ("all losses are as good as best", same, 0.0),
    )
    # a sum is larger than a mean, or smaller; and no rank can tell by counting which case it is in
    pairs = [(i, sign) for i in range(len(cases)) for sign in (1, -1)]
    for place in draw.tensor(Kind(torch.int64, (len(pairs),))).argsort().tolist():
        i, sign = pairs[place]
        (name, off, margin), one = cases[i], (n - 1 + i) % n
        # numbers that n divides, so that a mean is exact in whichever way it is computed
        best = sign * n * (8 + int(draw.tensor(Kind(torch.int64, (1,)))) % 8)
        loss = PerRank(float(best + n * (off[(r - one) % n] + margin)) for r in draw.ranks)
        words = f"{name.format(f'rank {one}')} ({'positive' if sign > 0 else 'negative'})"
        yield draw.case(words, loss=loss, best=float(best))
    # 0.7 is no float32, and 0.7 − 10⁻¹² is not 0.7; on more than two ranks a sum is rounded
    equal = ((0.7, 0.7), (-0.7, -0.7)) if n <= 2 else ()
    for loss, best in (*equal, (0.7 - 1e-12, 0.7)):
        words = f"all losses are {loss!r}, and best is {best!r}"
        yield draw.case(words, loss=PerRank([loss] * n), best=best)
    yield draw.case(
        "there is no best yet",
        loss=PerRank(float(r + 1) for r in draw.ranks),
        best=math.inf,
    )


should_stop = Exercise(
    signature="should_stop(loss: float, best: float) -> bool",
    summary="whether the mean loss is no better than the best so far, the same on every rank",
    inputs=_losses,
    values=Values(lambda c: [sum(c.loss) / c.n >= c.best] * c.n),
    traffic=TrafficRules(
        limits=(calls({"all_reduce", "send"}, "≤", lambda c: c.n),),
        # whatever it is told of the others' losses
        least=lambda c, _: c.n * (c.n > 1),
        allowed=frozenset({"all_reduce"}),
    ),
    mistakes=(
        Mistake(
            "A tensor comes back, where True or False is asked for: bool(...) makes one of it, and"
            " so does a comparison of numbers, which item() gives you.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and all(isinstance(held, torch.Tensor) for held in e.actual)
            ),
        ),
        Mistake(
            "Some ranks wait in all_reduce for others that have returned already. Every rank has to"
            " make the call, whatever its own loss is: decide after it, and not before.",
            when=lambda e: e.diagnosis is Diagnosis.DEADLOCK,
        ),
    ),
)


# A ring of whole tensors. --------------------------------------------------------------


def _sends_and_receives(draw: Draw) -> Iterator[Case]:
    for kind in kinds(draw.n):
        yield draw.case(
            f"SUM of {kind}",
            send=draw.per_rank(kind, "SUM"),
            # what lies in the buffer for the result means nothing
            recv=PerRank(draw.tensor(kind) for _ in draw.ranks),
        )


def _passed_on(n: int, count: int) -> int:
    """Return the elements of a whole tensor, or of the two chunks, padded, that are passed on."""
    return max(count, 2 * -(-count // n))


tutorial_all_reduce = Exercise(
    signature="tutorial_all_reduce(send: Tensor, recv: Tensor) -> None",
    summary="the sum over all ranks in recv, of tensors that go round a ring",
    inputs=_sends_and_receives,
    values=Values(
        lambda c: [reduced(OPS["SUM"], c.send)] * c.n,
        result="recv",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(OPS["SUM"], c.send)] * c.n,
    ),
    # on two ranks left and right are one, and many mistakes look alike
    world_sizes=(1, 3, 2, 4, 5, 8),
    traffic=TrafficRules(
        limits=(
            neighbours_only(),
            point(sent_elements("≤", lambda c: (c.n - 1) * _passed_on(c.n, c.send[0].numel()))),
        ),
        least=combined,
    ),
    mistakes=(
        *evidence.BUFFER_RACES,
        Mistake(
            "Every rank sends and none receives: a blocking send waits for its receive. Start with"
            " request = dist.isend(...), then recv, then request.wait().",
            when=evidence.all_send,
        ),
    ),
)
