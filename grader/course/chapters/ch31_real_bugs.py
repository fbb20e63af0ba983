"""Chapter 31: bugs that people have reported in public, each in its smallest program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.core.verdict import Diagnosis
from grader.exercise.cases import Case, Draw, Kind, PerRank, nbytes
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import bytes_of_one, moved

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
    """Make the group, and report it by its ranks; what is no group by its type and value."""
    group = answer([(first, second) for first, second in pairs])
    if group is None:
        return None
    if not isinstance(group, dist.ProcessGroup):
        return f"{type(group).__name__} {group!r}"[:60]
    return named(dist.get_process_group_ranks(group))


def named(ranks: Sequence[int]) -> str:
    """Return how a report names a group."""
    return f"group of rank{'s' * (len(ranks) > 1)} {', '.join(map(str, sorted(ranks)))}"


def _reported(e: Evidence, *starts: str) -> bool:
    """Return whether some rank's report begins with one of these."""
    return any(str(one).startswith(starts) for one in e.actual)


pair_group = Exercise(
    signature="pair_group(pairs: list[tuple[int, int]]) -> dist.ProcessGroup | None",
    summary="the group of one's own pair, None without one",
    inputs=lambda draw: (draw.case(name, pairs=pairs) for name, pairs in _pairings(draw.n)),
    adapter=group_in_rank,
    values=Values(
        lambda c: [
            next((named(pair) for pair in c.pairs if rank in pair), None) for rank in c.ranks
        ]
    ),
    traffic=TrafficRules(allowed=frozenset({"new_group"})),
    mistakes=(
        Mistake(
            "A pair of ranks is not a group yet. dist.new_group(pair) makes a group of it.",
            when=lambda e: _reported(e, "list", "tuple"),
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


def rows(draw: Draw) -> Iterator[Case]:
    """Draw a tensor for every rank; they differ in their number of rows."""
    for name, dtype, counts, row in _ragged(draw.n):
        yield draw.case(name, x=draw.per_rank([Kind(dtype, (count, *row)) for count in counts]))


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
            "weight": Kind(double, (n + 1, 2)),
            "exp_avg": Kind(single, (2, 2, 3)),
            "scale": Kind(torch.bfloat16, (5,)),
        },
    )
    yield "one has no rows", {"b": Kind(double, (0, 3)), "a": Kind(double, (2, 3))}
    yield "a single name", {"weight": Kind(single, (4, 1))}
    yield "no name", {}


def shards(draw: Draw) -> Iterator[Case]:
    """Draw every rank's shards; each rank has the names in another order, and none is sorted."""
    for i, (name, kinds) in enumerate(_states(draw.n)):
        columns = {key: draw.per_rank(kind) for key, kind in kinds.items()}
        orders = [list(kinds)[::-1] if r % 2 else list(kinds) for r in draw.ranks]
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
