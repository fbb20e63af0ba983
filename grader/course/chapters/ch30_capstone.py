"""Chapter 30: a small transformer on a mesh of ranks: data, tensor and pipeline parallel at once.

The oracle trains the whole model in one process and in float64.
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

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.groups import group_from_data, group_of, never_connected
from grader.exercise.limits import (
    Limit,
    across,
    held,
    largest_message,
    point,
    sent_elements,
)
from grader.instruments import HeldStorages, group_as_data
from grader.instruments.marks import memory_mark
from headcount.core.verdict import Diagnosis

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
    """Make the mesh, and report each group by its ranks."""
    mesh = answer(dp, tp, pp)
    if not isinstance(mesh, dict):
        return "other", mesh
    return {str(name): group_as_data(group) for name, group in mesh.items()}


def _mesh_from_data(c: Case, data: Any) -> Any:
    if not isinstance(data, dict):
        return data[1]
    return {name: group_from_data(group) for name, group in data.items()}


def right_mesh(c: Case) -> list[dict[str, list[int]]]:
    """Return the ranks of every rank's groups."""
    return [
        {name: members(rank, _layout(c), axis) for axis, name in enumerate(NAMES)}
        for rank in c.ranks
    ]


def _only_singles(e: Evidence) -> bool:
    """Return whether groups of one rank are wrong, and all others right."""
    wrong = [
        ranks
        for one in e.failed
        for mesh, right in zip(one.actual, right_mesh(one.case), strict=True)
        for name, ranks in right.items()
        if mesh[name] != group_of(ranks)
    ]
    larger = any(math.prod(_layout(one.case)) > 1 for one in e.judged)
    return larger and bool(wrong) and all(len(ranks) == 1 for ranks in wrong)


build_mesh = Exercise(
    signature="build_mesh(dp: int, tp: int, pp: int) -> dict[str, dist.ProcessGroup]",
    summary="one's groups along the three dimensions of a mesh of ranks",
    world_sizes=(1, 2, 4, 6, 8),
    inputs=lambda draw: (
        draw.case(_words(one), dp=one[0], tp=one[1], pp=one[2]) for one in layouts(draw.n)
    ),
    adapter=mesh_in_rank,
    values=Values(
        lambda c: [
            {name: group_of(ranks) for name, ranks in mesh.items()} for mesh in right_mesh(c)
        ],
        facts=_mesh_from_data,
    ),
    traffic=TrafficRules(
        allowed=frozenset({"new_group"}),
        proof=never_connected(
            lambda c: [ranks for mesh in right_mesh(c) for ranks in mesh.values()]
        ),
    ),
    mistakes=(
        Mistake(
            "Only groups of one rank are wrong. Along a dimension of size 1 a rank's group has this"
            " rank alone, and dist.new_group makes it like all others.",
            when=_only_singles,
        ),
        *evidence.NO_GROUPS,
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
    if not hasattr(group, "watch_receives"):
        # simulated ranks share the memory of one process
        losses = answer(dict(model_config), given, dp, tp, pp)
        return divided_by_first(losses) if relative else losses
    group.watch_receives(storages)
    with storages:
        losses = answer(dict(model_config), given, dp, tp, pp)
    if storages.least is not None:
        group.mark(memory_mark(storages.least[0], "when it holds least", storages.least[1]))
    return divided_by_first(losses) if relative else losses


# The oracle. ------------------------------------------------------------------------


def trained(c: Case) -> list[list[float]]:
    """Return the losses of one process that has the whole model, and steps of gradient descent."""
    config = c.model_config
    names = [f"{i}.{name}" for i in range(config["layers"]) for name in BLOCK]
    weights = {
        name: initial_weight(config, name).double().requires_grad_()
        for name in ("embedding", *names, "head")
    }
    losses = []
    for inputs, targets in c.batches:
        loss = _loss(weights, inputs, targets, config)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        for weight, gradient in zip(weights.values(), gradients, strict=True):
            weight.data -= config["learning_rate"] * gradient
        losses.append(float(loss.detach()))
    return [divided_by_first(losses) if c.relative else losses] * c.n


def _loss(
    weights: dict[str, torch.Tensor],
    inputs: torch.Tensor,
    targets: torch.Tensor,
    config: dict[str, Any],
) -> torch.Tensor:
    """Return the mean cross entropy of a transformer whose norms have no weights."""
    x = F.embedding(inputs, weights["embedding"])
    for i in range(config["layers"]):
        query, key, value, out, up, down = (weights[f"{i}.{name}"] for name in BLOCK)
        y = _norm(x)
        x = x + _attention(y @ query, y @ key, y @ value, config["heads"]) @ out
        x = x + F.gelu(_norm(x) @ up) @ down
    return F.cross_entropy((_norm(x) @ weights["head"]).flatten(0, 1), targets.flatten())


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
            and all(one.diagnosis is Diagnosis.WRONG_VALUE for one in e.failed if not one.limit)
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
            "The loss has not been passed on: ranks of other stages return None. Let those that do"
            " not know it put in 0, and sum over the pp group; or broadcast from the last stage.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and e.case.pp > 1
                and any(isinstance(losses, (list, tuple)) and None in losses for losses in e.actual)
            ),
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
