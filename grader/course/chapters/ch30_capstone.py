"""Chapter 30: a small transformer on a mesh of ranks: data, tensor and pipeline parallel at once.

The oracle trains the whole model in one process and in float64.  Mistakes are trained there, too,
where it takes one copy of the model for each rank of a group.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as F

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind
from grader.course.exercise import Evidence, Exercise, JudgedCase, Mistake, TrafficRules, Values
from grader.course.limits import (
    Limit,
    across,
    held,
    holding,
    largest_message,
    point,
    sent_elements,
)
from grader.rank.instrumentation import HeldStorages

# The mesh. --------------------------------------------------------------------------

#: The number of ranks along each dimension: dp, tp, pp.
Layout = tuple[int, int, int]

NAMES = ("dp", "tp", "pp")


def layouts(n: int) -> list[Layout]:
    """Return all layouts of n ranks: those that use most dimensions first."""
    parts = [d for d in range(1, n + 1) if n % d == 0]
    found = [(d, t, n // d // t) for d in parts for t in parts if n % (d * t) == 0]
    return sorted(found, key=lambda one: (one.count(1), one))


def coordinates(rank: int, layout: Layout) -> tuple[int, int, int]:
    """Return d, t and p of a rank: rank = (p·dp + d)·tp + t."""
    dp, tp, _ = layout
    return rank // tp % dp, rank % tp, rank // tp // dp


def members(rank: int, layout: Layout, axis: int) -> list[int]:
    """Return the ranks that differ from one along a dimension only, itself included."""
    mine = coordinates(rank, layout)
    return [
        other
        for other in range(math.prod(layout))
        if all(coordinates(other, layout)[i] == mine[i] for i in range(3) if i != axis)
    ]


def _layout(c: Case) -> Layout:
    return int(c.dp), int(c.tp), int(c.pp)


def _words(layout: Layout) -> str:
    return " × ".join(f"{name} {size}" for name, size in zip(NAMES, layout, strict=True))


# The groups. ------------------------------------------------------------------------


def mesh_in_rank(answer: Callable[..., Any], dp: int, tp: int, pp: int) -> Any:
    """Make the mesh, and report each group by its ranks, and anything else by type and value."""
    mesh = answer(dp, tp, pp)
    if not isinstance(mesh, dict):
        return mesh
    found: dict[str, Any] = {}
    for name, group in mesh.items():
        known = isinstance(group, dist.ProcessGroup)
        found[str(name)] = (
            named(dist.get_process_group_ranks(group))
            if known
            else f"{type(group).__name__} {group!r}"[:60]
        )
    return found


def named(ranks: Sequence[int]) -> str:
    """Return how a report names a group."""
    return f"group of rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _meshes(c: Case, of: Callable[[int], dict[str, list[int]]]) -> list[dict[str, str]]:
    return [{name: named(ranks) for name, ranks in of(rank).items()} for rank in c.ranks]


def right_mesh(c: Case) -> list[dict[str, str]]:
    """Return every rank's groups."""
    return _meshes(
        c,
        lambda rank: {name: members(rank, _layout(c), axis) for axis, name in enumerate(NAMES)},
    )


def _strided(order: str) -> Callable[[Case], list[dict[str, str]]]:
    """Return what gives the groups of another order of numbering, outermost dimension first."""

    def gives(c: Case) -> list[dict[str, str]]:
        sizes = {"d": c.dp, "t": c.tp, "p": c.pp}
        places = {
            rank: dict(zip(order, place, strict=True))
            for rank, place in enumerate(
                (a, b, e)
                for a in range(sizes[order[0]])
                for b in range(sizes[order[1]])
                for e in range(sizes[order[2]])
            )
        }

        def of(rank: int) -> dict[str, list[int]]:
            return {
                f"{axis}p": [
                    other
                    for other, place in places.items()
                    if all(place[i] == places[rank][i] for i in order if i != axis)
                ]
                for axis in "dtp"
            }

        return _meshes(c, of)

    return gives


def _blocks(c: Case) -> list[dict[str, str]]:
    """Return groups that are all of consecutive ranks."""
    sizes = dict(zip(NAMES, _layout(c), strict=True))
    return _meshes(
        c,
        lambda rank: {
            name: list(range(rank // size * size, rank // size * size + size))
            for name, size in sizes.items()
        },
    )


def _swapped(one: str, other: str) -> Callable[[Case], list[dict[str, str]]]:
    """Return what gives the right groups with two names exchanged."""
    names = {one: other, other: one}
    return lambda c: [
        {name: groups[names.get(name, name)] for name in NAMES} for groups in right_mesh(c)
    ]


def _planes(c: Case) -> list[dict[str, str]]:
    """Return the groups of all ranks that share the coordinate of each dimension."""
    layout = _layout(c)
    return _meshes(
        c,
        lambda rank: {
            name: [
                other
                for other in c.ranks
                if coordinates(other, layout)[axis] == coordinates(rank, layout)[axis]
            ]
            for axis, name in enumerate(NAMES)
        },
    )


def _reported(e: Evidence, *starts: str) -> bool:
    """Return whether some group's report begins with one of these."""
    meshes = [mesh for mesh in e.actual if isinstance(mesh, dict)]
    return any(str(value).startswith(starts) for mesh in meshes for value in mesh.values())


def _only_singles(e: Evidence) -> bool:
    """Return whether groups of one rank are wrong, and all others right."""
    wrong = [
        right
        for one in e.failed
        for mesh, rights in zip(one.actual, right_mesh(one.case), strict=True)
        for name, right in rights.items()
        if mesh[name] != right
    ]
    larger = any(math.prod(_layout(one.case)) > 1 for one in e.judged)
    return larger and bool(wrong) and all(right.startswith("group of rank ") for right in wrong)


build_mesh = Exercise(
    signature="build_mesh(dp: int, tp: int, pp: int) -> dict[str, dist.ProcessGroup]",
    summary="one's groups along the three dimensions of a mesh of ranks",
    world_sizes=(1, 2, 4, 6, 8),
    inputs=lambda draw: (
        draw.case(_words(one), dp=one[0], tp=one[1], pp=one[2]) for one in layouts(draw.n)
    ),
    adapter=mesh_in_rank,
    values=Values(right_mesh),
    traffic=TrafficRules(allowed=frozenset({"new_group"})),
    mistakes=(
        Mistake(
            "tp and dp have each other's ranks. t counts fastest, rank = (p·dp + d)·tp + t: the tp"
            " group has consecutive ranks, and those of dp are tp apart.",
            gives=(_swapped("dp", "tp"), _strided("ptd")),
        ),
        Mistake(
            "pp and tp have each other's ranks. t counts fastest and p slowest: the tp group has"
            " consecutive ranks, and those of pp are dp·tp apart.",
            gives=(_swapped("pp", "tp"), _strided("tdp")),
        ),
        Mistake(
            "dp and pp have each other's ranks. p counts slowest: the ranks of a pp group are dp·tp"
            " apart, those of a dp group only tp.",
            gives=(_swapped("dp", "pp"), _strided("dpt")),
        ),
        Mistake(
            "Ranks are numbered in another order here. rank = (p·dp + d)·tp + t: t counts fastest,"
            " then d, then p.",
            gives=(_strided("tpd"), _strided("dtp")),
        ),
        Mistake(
            "All three kinds of groups have consecutive ranks. Only those of tp do; along dp ranks"
            " are tp apart, and along pp dp·tp.",
            gives=_blocks,
        ),
        Mistake(
            "These are the ranks that have one coordinate in common. A group has the ranks that"
            " differ in one coordinate only, and have both others in common.",
            gives=_planes,
        ),
        Mistake(
            "Only groups of one rank are wrong. Along a dimension of size 1 a rank's group has this"
            " rank alone, and dist.new_group makes it like all others.",
            when=_only_singles,
        ),
        Mistake(
            "Lists of ranks are not groups yet. dist.new_group(ranks) makes a group of them.",
            when=lambda e: _reported(e, "list", "tuple", "range", "Tensor"),
        ),
        Mistake(
            "−100 is what new_group returns on a rank that is not in the group"
            " (dist.GroupMember.NON_GROUP_MEMBER). Keep a group only where rank is among its"
            " members: here a later one has taken its place.",
            when=lambda e: _reported(e, f"int {dist.GroupMember.NON_GROUP_MEMBER}"),
        ),
        Mistake(
            "With use_local_synchronization=True new_group returns None on a rank that is not in"
            " the group. Keep a group only where rank is among its members.",
            when=lambda e: _reported(e, "NoneType") and e.written("use_local_synchronization=True"),
        ),
    ),
)


# The model. -------------------------------------------------------------------------

#: The number of different tokens.
_VOCABULARY = 11

#: The weights of a block, in the order in which they are used.
BLOCK = ("query", "key", "value", "out", "up", "down")


def initial_weight(config: dict[str, Any], name: str) -> torch.Tensor:
    """Return a whole weight as training begins, as the chapter's function of this name does."""
    h, v = config["width"], config["vocabulary"]
    shapes = {"embedding": (v, h), "up": (h, 4 * h), "down": (4 * h, h), "head": (h, v)}
    rows, columns = shapes.get(name.split(".")[-1], (h, h))
    generator = torch.Generator().manual_seed(config["seed"] + zlib.crc32(name.encode()))
    whole: torch.Tensor = torch.randn(rows, columns, generator=generator) * h**-0.5
    return whole


def _norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    q, k, v = (t.reshape(*t.shape[:2], heads, -1).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


@dataclass(frozen=True)
class _Scenario:
    """A layout, and what is trained on it."""

    layout: Layout
    layers: int
    heads: int
    micro_batches: int
    rows: int = 1
    length: int = 3


_SCENARIOS = (
    _Scenario((1, 1, 1), 2, 2, 2),
    _Scenario((2, 1, 1), 2, 2, 1),
    _Scenario((1, 2, 1), 2, 4, 2),
    _Scenario((1, 1, 2), 4, 2, 3),
    _Scenario((2, 2, 2), 2, 4, 2),
    _Scenario((1, 8, 1), 2, 8, 1, length=2),
    _Scenario((4, 1, 2), 2, 1, 1, rows=2),
    _Scenario((2, 1, 4), 4, 2, 2),
)

#: Batches of a case on few ranks: the second loss shows the first step, and the third one whether
#: gradients of the first batch are still there.  Of many ranks the first step is enough.
BATCHES, FEW, ON_MANY = 3, 2, 2


def trainings(draw: Draw) -> Iterator[Case]:
    """Draw a seed and tokens for each layout of so many ranks.

    Each layout is judged twice: by the loss of one batch, which forward passes alone have made, and
    by what the steps make of it, where a wrong factor of all losses makes no difference.  So one
    slip, in a factor of the losses or of the gradients, fails half of the cases, and not all.
    """
    for one in _SCENARIOS:
        dp, tp, pp = one.layout
        if dp * tp * pp != draw.n:
            continue
        rows = dp * one.micro_batches * one.rows
        words = draw.tensor(Kind(torch.int64, (2,))) + 99  # drawn from −99 to 99
        tokens = [
            (draw.tensor(Kind(torch.int64, (rows, one.length + 1))) + 99) % _VOCABULARY
            for _ in range(BATCHES if draw.n <= FEW else ON_MANY)
        ]
        config = {
            "vocabulary": _VOCABULARY,
            "width": 16,
            "heads": one.heads,
            "layers": one.layers,
            "micro_batches": one.micro_batches,
            "learning_rate": 0.5,
            "seed": int(199 * words[0] + words[1]),
        }
        m = one.micro_batches
        name = (
            f"{_words(one.layout)}; {one.layers} layers, {one.heads} head{'s' * (one.heads > 1)},"
            f" {m} micro-batch{'es' * (m > 1)}"
        )
        batches = [[t[:, :-1].contiguous(), t[:, 1:].contiguous()] for t in tokens]
        sizes = {"dp": dp, "tp": tp, "pp": pp}
        yield draw.case(
            f"{name}, one batch",
            model_config=config,
            batches=batches[:1],
            **sizes,
            relative=False,
        )
        yield draw.case(
            f"{name}, each loss divided by the first",
            model_config=config,
            batches=batches,
            **sizes,
            relative=True,
        )


def divided_by_first(losses: Any) -> Any:
    """Return each loss divided by the first; what is not a list of numbers is left as it is."""
    numbers = isinstance(losses, (list, tuple)) and all(type(one) is float for one in losses)
    return [one / losses[0] for one in losses] if numbers and losses and losses[0] else losses


# The call in a rank. ----------------------------------------------------------------


class LeastHeld(HeldStorages):  # type: ignore[no-untyped-call]
    """Held storages that note the fewest bytes held as the rank began to wait.

    They count from the first matrix product on; before it, a rank may not have made its weights.

    Attributes:
        least: those bytes, and what they were; None if the rank has not waited.
    """

    def __init__(self, own: Callable[[], list[torch.Tensor]]) -> None:
        super().__init__(own)
        self.least: tuple[int, str] | None = None
        self._computes = False

    def received(self, tensors: Any) -> None:
        """Do nothing: what arrives is noted when an operation uses it."""

    def waits(self) -> None:
        """Compare what is held, as the rank begins to wait, with the least so far."""
        if self._computes and (self.least is None or self.nbytes < self.least[0]):
            self.least = self.nbytes, str(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self._computes = self._computes or func.overloadpacket.__name__ in ("mm", "bmm", "addmm")
        return result


def train_in_rank(
    answer: Callable[..., Any],
    model_config: dict[str, Any],
    batches: list[list[torch.Tensor]],
    dp: int,
    tp: int,
    pp: int,
    relative: bool,
) -> Any:
    """Let the answer train, and mark the least that the rank has held meanwhile."""
    given = [(inputs, targets) for inputs, targets in batches]
    storages = LeastHeld(lambda: [t for pair in given for t in pair])
    group: Any = dist.group.WORLD
    group.watch_receives(storages)
    with storages:
        losses = answer(dict(model_config), given, dp, tp, pp)
    if storages.least is not None:
        group.mark(holding(storages.least[0], "when it holds least", storages.least[1]))
    return divided_by_first(losses) if relative else losses


# The oracle, and what mistakes give. ------------------------------------------------


@dataclass(frozen=True)
class _Training:
    """A way to train, right or wrong.

    Attributes:
        of_dp: what rank d makes of the gradients of all d.
        alone: whether a rank of tp has only its own part of the gradient at the entry of a shard.
        times: what leave multiplies the gradient by in backward, by tp.
        scale: what the gradient of a weight is multiplied by, given the configuration and its name.
        gathers: whether gradients of earlier batches are added.
        heads: what the number of heads is multiplied by, by tp.
        layer: whose initial weights a layer has, given the layers of a stage.
        returned: what a rank returns of the losses of all d, given d and whether it is in the last
            stage.
    """

    of_dp: Callable[[torch.Tensor, int], torch.Tensor] = lambda all_d, d: all_d.mean(0)
    alone: bool = False
    times: Callable[[int], int] = lambda tp: 1
    scale: Callable[[dict[str, Any], str], float] = lambda config, name: 1.0
    gathers: bool = False
    heads: Callable[[int], int] = lambda tp: 1
    layer: Callable[[int, int], int] = lambda layer, per_stage: layer
    returned: Callable[[list[float], int, bool], float | None] = lambda all_d, d, last: (
        sum(all_d) / len(all_d)
    )


def trained(c: Case, way: _Training = _Training()) -> list[list[float | None]]:
    """Return the losses that every rank returns."""
    config, (dp, tp, pp) = c.model_config, _layout(c)
    parts = tp if way.alone else 1
    start = [_shards(config, way, pp, parts, t) for t in range(parts)]
    weights = [[{k: w.clone().requires_grad_() for k, w in one.items()} for one in start]
               for _ in range(dp)]  # fmt: skip
    left: list[list[dict[str, Any]]] = [[{} for _ in range(parts)] for _ in range(dp)]
    found: list[list[list[float]]] = []
    for inputs, targets in c.batches:
        pairs = zip(inputs.chunk(dp), targets.chunk(dp), strict=True)
        losses = [
            _losses(w, x, y, config, tp, way) for w, (x, y) in zip(weights, pairs, strict=True)
        ]
        found.append([[float(loss.detach()) for loss in of_d] for of_d in losses])
        for t in range(parts):
            names = list(weights[0][t])
            gradients = [
                torch.autograd.grad(losses[d][t], list(weights[d][t].values()), retain_graph=True)
                for d in range(dp)
            ]
            for name, all_d in zip(names, zip(*gradients, strict=True), strict=True):
                for d in range(dp):
                    slope = way.scale(config, name) * way.of_dp(torch.stack(all_d), d)
                    if way.gathers:
                        slope = left[d][t][name] = slope + left[d][t].get(name, 0)
                    weights[d][t][name].data -= config["learning_rate"] * slope
    reports = []
    for rank in c.ranks:
        d, t, p = coordinates(rank, _layout(c))
        means = [way.returned([of_d[t % parts] for of_d in one], d, p == pp - 1) for one in found]
        reports.append(divided_by_first(means) if c.relative else means)
    return reports


def _shards(
    config: dict[str, Any], way: _Training, pp: int, parts: int, t: int
) -> dict[str, torch.Tensor]:
    """Return the t-th part of all weights, in float64."""
    found = {"embedding": initial_weight(config, "embedding").double()}
    for i in range(config["layers"]):
        for name in BLOCK:
            whole = initial_weight(config, f"{way.layer(i, config['layers'] // pp)}.{name}")
            dim = 0 if name in ("out", "down") else 1
            found[f"{i}.{name}"] = whole.double().chunk(parts, dim)[t]
    found["head"] = initial_weight(config, "head").double()
    return found


def _losses(
    weights: list[dict[str, torch.Tensor]],
    inputs: torch.Tensor,
    targets: torch.Tensor,
    config: dict[str, Any],
    tp: int,
    way: _Training,
) -> list[torch.Tensor]:
    """Return the loss of each rank of a tp group, of which each has its part of the weights."""
    heads = config["heads"] * way.heads(tp) // len(weights)
    times = way.times(tp)

    def added(xs: list[torch.Tensor], parts: list[torch.Tensor]) -> list[torch.Tensor]:
        total = torch.stack(parts).sum(0).detach()
        # the value is the sum, and the gradient that of the own part
        return [
            x + total + times * (part - part.detach()) for x, part in zip(xs, parts, strict=True)
        ]

    xs = [F.embedding(inputs, one["embedding"]) for one in weights]
    for i in range(config["layers"]):
        rows = []
        for x, w in zip(xs, weights, strict=True):
            y = _norm(x)
            q, k, v = (y @ w[f"{i}.{name}"] for name in BLOCK[:3])
            rows.append(_attention(q, k, v, heads) @ w[f"{i}.out"])
        xs = added(xs, rows)
        xs = added(
            xs,
            [
                F.gelu(_norm(x) @ w[f"{i}.up"]) @ w[f"{i}.down"]
                for x, w in zip(xs, weights, strict=True)
            ],
        )
    return [
        F.cross_entropy((_norm(x) @ w["head"]).flatten(0, 1), targets.flatten())
        for x, w in zip(xs, weights, strict=True)
    ]


# Limits. ----------------------------------------------------------------------------


def _message(c: Case) -> int:
    """Return the elements of the activations of a micro-batch."""
    rows, length = c.batches[0][0].shape
    config = c.model_config
    return int(rows // c.dp // config["micro_batches"] * length * config["width"])


def _shard(c: Case) -> int:
    """Return the elements of the blocks' weights that a rank has."""
    config = c.model_config
    return int(config["layers"] // c.pp * 12 * config["width"] ** 2 // c.tp)


def _passes(c: Case) -> int:
    """Return how many micro-batches go through a stage in all."""
    return len(c.batches) * int(c.model_config["micro_batches"])


def _along(axis: int) -> Callable[[Case, Sequence[int]], bool]:
    """Make a test of whether ranks differ along one dimension and no other."""

    def differ(c: Case, ranks: Sequence[int]) -> bool:
        places = zip(*(coordinates(rank, _layout(c)) for rank in ranks), strict=True)
        return [len(set(one)) > 1 for one in places] == [i == axis for i in range(3)]

    return differ


def _along_limit(axis: int, limit: Limit) -> Limit:
    limit = across(limit, f"along {NAMES[axis]}", _along(axis))
    return point(replace(limit, applies=lambda c: _layout(c)[axis] > 1))


def _least_along_tp(c: Case) -> int:
    """Return what two all-reduces send for each layer and pass, forward and backward."""
    layers = int(c.model_config["layers"] // c.pp)
    return _passes(c) * layers * 4 * int(2 * _message(c) * (c.tp - 1) // c.tp)


def _ways_along_pp(c: Case) -> int:
    """Return in how many directions a rank sends activations or gradients, at most."""
    return 2 if c.pp > 2 else 1


def most_held(c: Case) -> int:
    """Return the bytes that a rank may hold when it holds least.

    These are its shard with gradients and a copy of them, embedding and head with theirs, and some
    activations; and half a shard is granted.
    """
    config = c.model_config
    ends = 4 * config["vocabulary"] * config["width"]
    return int(4 * (7 * _shard(c) // 2 + ends + 12 * _message(c)))


#: Elements a batch that may travel along pp beside activations, such as the loss.
_ASIDE = 8

LIMITS = (
    _along_limit(1, sent_elements("≥", _least_along_tp)),
    _along_limit(
        2, sent_elements("≥", lambda c: _passes(c) * _message(c) * _ways_along_pp(c) // c.tp)
    ),
    _along_limit(
        2,
        sent_elements(
            "≤", lambda c: _passes(c) * _message(c) * _ways_along_pp(c) + _ASIDE * len(c.batches)
        ),
    ),
    _along_limit(2, largest_message("≤", _message)),
    _along_limit(
        0, sent_elements("≥", lambda c: len(c.batches) * 2 * _shard(c) * (c.dp - 1) // c.dp)
    ),
    point(
        replace(
            held("bytes held by one rank when it holds least", "≤", most_held),
            applies=lambda c: c.tp * c.pp > 1,
        )
    ),
)


# What an answer shows. --------------------------------------------------------------


def _wrong_values(e: Evidence) -> list[JudgedCase]:
    return [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual]


def _only_where(test: Callable[[Case], bool]) -> Callable[[Evidence], bool]:
    """Make a test of whether some values are wrong, and all are in just the cases of one kind.

    Cases on several ranks that are not of that kind must have passed.
    """

    def seen(e: Evidence) -> bool:
        values = [one for one in e.judged if one.limit is None and one.case.n > 1]
        return (
            bool(_wrong_values(e))
            and any(one.passed for one in values)
            and all(test(one.case) for one in e.failed if one.limit is None)
            and not any(test(one.case) for one in values if one.passed)
        )

    return seen


def _only_along(axis: int, first_right: bool) -> Callable[[Evidence], bool]:
    """Make a test of whether values are wrong just where there are ranks along one dimension.

    The loss of one batch must be right wherever they are, or wrong wherever they are.
    """

    def concerned(c: Case) -> bool:
        return _layout(c)[axis] > 1 and bool(c.relative or not first_right)

    return _only_where(concerned)


def _missed(axis: int, diagnosis: Diagnosis) -> Callable[[Evidence], bool]:
    """Make a test of whether the first limit that is missed is the one along a dimension."""

    def seen(e: Evidence) -> bool:
        limit = e.here.limit
        along = limit is not None and limit.quantity.endswith(f"rank along {NAMES[axis]}")
        return along and e.diagnosis is diagnosis

    return seen


def _not_last(value: float | None) -> Callable[[Case], list[list[float | None]]]:
    """Return what gives the losses if only the last stage knows them; others return ``value``."""
    return lambda c: trained(
        c, _Training(returned=lambda all_d, d, last: sum(all_d) / len(all_d) if last else value)
    )


def _gives(**changed: Any) -> Callable[[Case], list[list[float | None]]]:
    return lambda c: trained(c, _Training(**changed))


def _fitting_heads(c: Case) -> list[list[float | None]] | None:
    """Return the losses if every rank has as many heads as the model; None if they do not fit."""
    if c.model_config["width"] % (c.model_config["heads"] * c.tp):
        return None
    return trained(c, _Training(heads=lambda tp: tp))


def _sum(all_d: torch.Tensor, d: int) -> torch.Tensor:
    return all_d.sum(0)


def _own(all_d: torch.Tensor, d: int) -> torch.Tensor:
    return all_d[d]


def _averaged_twice(all_d: torch.Tensor, d: int) -> torch.Tensor:
    return all_d.mean(0) / len(all_d)


train = Exercise(
    signature=(
        "train(model_config: dict, batches: list, dp: int, tp: int, pp: int) -> list[float]"
    ),
    summary="a small transformer on a mesh of ranks, with the losses of one process",
    points=5,
    world_sizes=(1, 2, 8),
    inputs=trainings,
    adapter=train_in_rank,
    values=Values(trained, magnitude=lambda c: [[1.0] * len(c.batches)] * c.n, relative=1e-4),
    traffic=TrafficRules(
        limits=LIMITS,
        allowed=frozenset(
            {
                "new_group",
                "all_reduce",
                "broadcast",
                "all_gather",
                "all_gather_into_tensor",
                "reduce_scatter",
                "reduce_scatter_tensor",
                "all_to_all",
                "all_to_all_single",
            }
        ),
    ),
    # each dimension has to work by itself
    point=lambda one: bool(one.case.n == 2),
    mistakes=(
        Mistake(
            "The gradients are added up over dp, and not averaged: the loss of the batch is the"
            " mean of the ranks' losses, so divide by dp.",
            gives=_gives(of_dp=_sum),
        ),
        Mistake(
            "Each rank of dp makes its step with its own gradients, and the copies of the model"
            " drift apart. Average them over the dp group before the step.",
            gives=(
                _gives(of_dp=_own),
                _gives(of_dp=_own, returned=lambda all_d, d, last: all_d[d]),
            ),
        ),
        Mistake(
            "The gradients are divided by dp twice. One division makes the mean: either of the"
            " loss, or of the sum of the gradients.",
            gives=_gives(of_dp=_averaged_twice),
        ),
        Mistake(
            "The gradients are divided by the number of all ranks. A mean over the dp group divides"
            " by dp.",
            gives=lambda c: trained(c, _Training(of_dp=lambda all_d, d: all_d.sum(0) / c.n)),
        ),
        Mistake(
            "Each rank of dp returns the loss of its own rows. The weights are right; the loss of"
            " the whole batch is the mean over dp.",
            gives=_gives(returned=lambda all_d, d, last: all_d[d]),
        ),
        Mistake(
            "The losses are added up over dp: the loss of the batch is their mean.",
            gives=_gives(returned=lambda all_d, d, last: sum(all_d)),
        ),
        Mistake(
            "The weights are right, but the losses are tp times too large: all ranks of a tp group"
            " know the same loss. Sum over the pp group and over the dp group, and not over all"
            " ranks.",
            gives=lambda c: trained(
                c, _Training(returned=lambda all_d, d, last: c.tp * sum(all_d) / len(all_d))
            ),
        ),
        Mistake(
            "The weights are right, but the losses are divided by pp: of a pp group only one rank"
            " knows a loss, so their sum is that loss. Divide by dp alone.",
            gives=lambda c: trained(
                c, _Training(returned=lambda all_d, d, last: sum(all_d) / len(all_d) / c.pp)
            ),
        ),
        Mistake(
            "The loss has not been passed on: ranks of other stages return 0. Sum over the pp"
            " group, in which only the last stage has another number than 0, or broadcast from it.",
            gives=_not_last(0.0),
        ),
        Mistake(
            "The loss has not been passed on: ranks of other stages return None. Let those that do"
            " not know it put in 0, and sum over the pp group; or broadcast from the last stage.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and e.case.pp > 1
                and any(isinstance(losses, (list, tuple)) and None in losses for losses in e.actual)
            ),
        ),
        Mistake(
            "What comes back at the entry of a shard is the part of this rank's own columns and"
            " heads. Add these parts up over tp in the backward pass of enter: otherwise the layers"
            " below, down to the embedding, learn from only part of the gradient.",
            gives=_gives(alone=True),
        ),
        Mistake(
            "Gradients that come back through leave are added up over tp, and so are tp times too"
            " large. All ranks have the same loss: backward of leave passes the gradient on as it"
            " is.",
            gives=_gives(times=lambda tp: tp),
        ),
        Mistake(
            "Every rank cuts its part of the columns into as many heads as the whole model has. It"
            " has heads // tp of them.",
            gives=_fitting_heads,
        ),
        Mistake(
            "The loss is summed over micro-batches, and not averaged: divide the loss of each by"
            " their number before its backward pass.",
            gives=(
                _gives(scale=lambda config, name: config["micro_batches"]),
                lambda c: trained(
                    c,
                    _Training(
                        scale=lambda config, name: config["micro_batches"],
                        returned=lambda all_d, d, last: (
                            sum(all_d) / len(all_d) * c.model_config["micro_batches"]
                        ),
                    ),
                ),
            ),
        ),
        Mistake(
            "Gradients of earlier batches are still there when those of the next are added. Set"
            " p.grad = None before each batch.",
            gives=_gives(gathers=True),
        ),
        Mistake(
            "The embedding never changes. It is a weight of the first stage like all others:"
            " parameters() of the whole stage has to give it.",
            gives=_gives(scale=lambda config, name: name != "embedding"),
        ),
        Mistake(
            "The head never changes. It is a weight of the last stage like all others: parameters()"
            " of the whole stage has to give it.",
            gives=_gives(scale=lambda config, name: name != "head"),
        ),
        Mistake(
            "Every stage has the first layers of the model. Stage p begins with layer p · layers //"
            " pp.",
            gives=_gives(layer=lambda layer, per_stage: layer % per_stage),
        ),
        Mistake(
            "Layers are dealt out to the stages in turn. A stage has consecutive layers: stage p"
            " begins with layer p · layers // pp.",
            gives=lambda c: trained(
                c, _Training(layer=lambda layer, per: layer % per * c.pp + layer // per)
            ),
        ),
        Mistake(
            "The gradients of embedding and head are added up over tp, and so are tp times too"
            " large. All ranks of a tp group have them whole and alike: along tp nothing is left to"
            " do for them.",
            gives=lambda c: trained(
                c, _Training(scale=lambda config, name: 1.0 if "." in name else float(c.tp))
            ),
        ),
        Mistake(
            "The step goes uphill: subtract learning_rate · gradient from the weights.",
            gives=_gives(scale=lambda config, name: -1.0),
        ),
        Mistake(
            "The weights never change: after the gradients are averaged, subtract learning_rate ·"
            " gradient from each of them.",
            gives=_gives(scale=lambda config, name: 0.0),
        ),
        Mistake(
            "A rank's number in a group is not its number in the world. src and dst take the one in"
            " the world; group_src and group_dst take the one in the group.",
            when=lambda e: e.says("is not in this group of rank"),
        ),
        Mistake(
            "Wherever tp is more than 1 even the first loss is wrong, before anything was learned,"
            " and elsewhere all is right. So look at the forward pass along tp: which columns, rows"
            " and heads has rank t, and what is added up after the product with the rows?",
            when=_only_along(1, first_right=False),
        ),
        Mistake(
            "Wherever tp is more than 1 the first loss is right and the later ones are wrong, and"
            " elsewhere all is right. So look at the backward pass along tp: enter adds gradients"
            " up, leave passes them on, and no others are added up.",
            when=_only_along(1, first_right=True),
        ),
        Mistake(
            "Wherever pp is more than 1 even the first loss is wrong, before anything was learned,"
            " and elsewhere all is right. So look at the stages' layers, and at how the loss of the"
            " last one reaches all.",
            when=_only_along(2, first_right=False),
        ),
        Mistake(
            "Wherever pp is more than 1 the first loss is right and the later ones are wrong, and"
            " elsewhere all is right. So look at what goes back through the pipeline, and at which"
            " weights make their step on which stage.",
            when=_only_along(2, first_right=True),
        ),
        Mistake(
            "Wherever dp is more than 1 the first loss is right and the later ones are wrong, and"
            " elsewhere all is right. So look at how gradients are averaged over dp, and which.",
            when=_only_along(0, first_right=True),
        ),
        Mistake(
            "Wherever dp is more than 1 even the first loss is wrong, before anything was learned,"
            " and elsewhere all is right. So look at which rows of the batch rank d takes, and at"
            " the mean of the losses.",
            when=_only_along(0, first_right=False),
        ),
        Mistake(
            "Wherever a batch is cut into several micro-batches something is wrong, and with one"
            " micro-batch all is right. So look at how their losses and gradients are put together:"
            " all of them count, and each is divided by their number once.",
            when=_only_where(lambda c: c.model_config["micro_batches"] > 1),
        ),
        Mistake(
            "Less travels along tp than two all-reduces a layer send, forward and backward. Ranks"
            " that share a layer have a part of its heads and columns each; here they seem to"
            " compute whole layers, or they are other ranks than build_mesh's.",
            when=_missed(1, Diagnosis.TOO_FEW_BYTES),
        ),
        Mistake(
            "Less travels along pp than the activations of the micro-batches. A stage has layers //"
            " pp layers and gets its input from the stage before; here some ranks seem to compute"
            " the layers of others, or they are other ranks than build_mesh's.",
            when=_missed(2, Diagnosis.TOO_FEW_BYTES),
        ),
        Mistake(
            "More travels along pp than one's own micro-batches. A rank takes 1/dp of the rows of"
            " a batch; here each seems to compute all of them.",
            when=_missed(2, Diagnosis.TOO_MANY_BYTES),
        ),
        Mistake(
            "What goes from stage to stage is larger than a micro-batch's activations. Cut the"
            " rank's rows into micro_batches and send those of each on their own, so that the next"
            " stage can begin.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and e.here.limit is not None
                and e.here.limit.quantity.startswith("elements in the largest message")
            ),
        ),
        Mistake(
            "Less travels along dp than the gradients of a rank's weights. Each rank of dp sees"
            " only its own rows, and the gradients of all its weights have to be averaged.",
            when=_missed(0, Diagnosis.TOO_FEW_BYTES),
        ),
        Mistake(
            "More stays in memory than a rank's part of the model. It has layers // pp layers, and"
            " 1/tp of each. A view keeps the whole weight alive: clone() your part, and let no"
            " variable hold the whole.",
            when=lambda e: e.diagnosis is Diagnosis.MEMORY_LIMIT and e.here.limit is not None,
        ),
    ),
)
