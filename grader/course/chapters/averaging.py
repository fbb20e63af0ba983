"""Gradients to be averaged, what they become, and what mistakes make of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from grader.core.compare import compare
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.chapters.replicas import ARCHITECTURES, build
from grader.course.exercise import JudgedCase

__all__ = [
    "among_holders",
    "averaged",
    "badly_divided",
    "divided",
    "gradient_lists",
    "known",
    "mean",
    "means",
    "named",
    "summed",
    "weights",
    "where_held",
    "with_gradients",
    "zeros_for_none",
]


def _lists(n: int) -> Iterator[tuple[str, list[Kind]]]:
    """Lists of gradients; some with as many numbers as there are ranks, one fewer, one more."""
    single, double, half = torch.float32, torch.float64, torch.bfloat16
    yield "three gradients", [Kind(double, (3, 4)), Kind(double, (4,)), Kind(double, (2, 2))]
    yield "one gradient", [Kind(single, (7,))]
    yield "a scalar, an empty one and a large one", [
        Kind(single, ()), Kind(single, (0,)), Kind(single, (20, 50)),
    ]  # fmt: skip
    yield "two dtypes", [Kind(double, (5,)), Kind(single, (3,)), Kind(double, (2, 3))]
    yield "short ones", [Kind(double, (n - 1,)), Kind(double, (n,)), Kind(double, (n + 1,))]
    yield "bfloat16", [Kind(half, (300,))]
    yield "no gradient at all", []


def gradient_lists(draw: Draw) -> Iterator[Case]:
    """For every rank a list of gradients, of the same shapes everywhere."""
    for name, kinds in _lists(draw.n):
        columns = [draw.per_rank(kind, "AVG") for kind in kinds]
        yield draw.case(name, grads=PerRank([column[r] for column in columns] for r in draw.ranks))


def mean(tensors: Sequence[torch.Tensor], divisor: int | None = None) -> torch.Tensor:
    """The mean, rounded once."""
    total = torch.stack([t.double() for t in tensors]).sum(0)
    return (total / (divisor or len(tensors))).to(tensors[0].dtype)


def means(c: Case, divisor: int | None = None) -> list[torch.Tensor]:
    """What ``grads`` becomes; the sums, with another ``divisor``, 1."""
    return [mean(column, divisor) for column in zip(*c.grads, strict=True)]


def badly_divided(c: Case, actual: Sequence[Any]) -> bool:
    """Whether these are the sums, or the sums divided by n − 1."""
    divisors = (d for d in (1, c.n - 1) if d)
    return any(compare([means(c, d)] * c.n, actual, c.n) is None for d in divisors)


def divided(judged: Sequence[JudgedCase], by: Callable[[int], int]) -> bool:
    """Whether these are the sums divided by this, with three ranks or more among them.

    Looked at is the first kind of input, in which nothing is rounded; with two ranks alone,
    n − 1 is 1.
    """
    first = [one for one in judged if one.case.name == judged[0].case.name]
    return any(one.case.n > 2 for one in first) and all(
        compare([means(one.case, by(one.case.n))] * one.case.n, one.actual, one.case.n) is None
        for one in first
    )


#: Name, network, dtype, and which ranks have which gradients: of rank, parameter's place, and n.
_HOLDINGS: tuple[tuple[str, str, torch.dtype, Callable[[int, int, int], bool]], ...] = (
    ("every gradient is there", "deep", torch.float64, lambda r, i, n: True),
    ("some are None on rank 0", "one layer", torch.float32, lambda r, i, n: r > 0 or i == 1),
    ("some are None on all ranks", "deep", torch.float32, lambda r, i, n: i % 3 != 1),
    ("each is on one rank only", "deep", torch.float64, lambda r, i, n: i % n == r),
    ("tied weights", "tied weights", torch.float32, lambda r, i, n: True),
    ("none at all", "one layer", torch.float32, lambda r, i, n: False),
    ("frozen parameters", "frozen parameters", torch.float32, lambda r, i, n: 2 <= i < 5),
)


def weights(draw: Draw, architecture: str, dtype: torch.dtype) -> PerRank:
    """For every rank random values of the parameters of a network."""
    kinds = _parameters(architecture, dtype)
    columns = [draw.tensor(Kind(dtype, (draw.n, *kind.shape))) for kind in kinds]
    return PerRank([column[r] for column in columns] for r in draw.ranks)


def _parameters(architecture: str, dtype: torch.dtype) -> list[Kind]:
    return [Kind(dtype, tuple(p.shape)) for p in ARCHITECTURES[architecture]().parameters()]


def with_gradients(draw: Draw) -> Iterator[Case]:
    """Networks whose gradients are there, or not, on each rank."""
    for name, architecture, dtype, holds in _HOLDINGS:
        state = weights(draw, architecture, dtype)
        columns = [draw.per_rank(kind, "AVG") for kind in _parameters(architecture, dtype)]
        gradients = PerRank(
            [column[r] if holds(r, i, draw.n) else None for i, column in enumerate(columns)]
            for r in draw.ranks
        )
        yield draw.case(
            name,
            architecture=architecture,
            dtype=str(dtype).removeprefix("torch."),
            state=state,
            gradients=gradients,
        )


def named(c: Case, combine: Callable[[list[Any], int], Any]) -> list[dict[str, Any]]:
    """What ranks report when each gradient becomes what ``combine`` makes of all ranks'."""
    names = list(dict(ARCHITECTURES[c.architecture]().named_parameters()))
    return [
        {
            "returned": None,
            **{
                f"gradient of {name}": combine([c.gradients[q][i] for q in c.ranks], r)
                for i, name in enumerate(names)
            },
            "weights": dict(zip(names, c.state[r], strict=True)),
        }
        for r in c.ranks
    ]


def known(held: list[Any]) -> list[torch.Tensor]:
    """The gradients of all ranks, zeros where there is none; empty if no rank has one."""
    there = [g for g in held if g is not None]
    return [torch.zeros_like(there[0]) if g is None else g for g in held] if there else []


def averaged(held: list[Any], _: int) -> Any:
    """The mean over all ranks, zeros where one has no gradient; ``None`` if none has."""
    return mean(known(held)) if known(held) else None


def summed(held: list[Any], _: int) -> Any:
    """The sum in its place."""
    return mean(known(held), 1) if known(held) else None


def among_holders(held: list[Any], _: int) -> Any:
    """The mean over those ranks that have a gradient."""
    there = [g for g in held if g is not None]
    return mean(there) if there else None


def where_held(held: list[Any], rank: int) -> Any:
    """The mean on those ranks that have a gradient, and nothing elsewhere."""
    return None if held[rank] is None else averaged(held, rank)


def zeros_for_none(c: Case) -> list[dict[str, Any]]:
    """Zeros in the place of what no rank has."""
    reports = named(c, averaged)
    like = dict(build(c.architecture, getattr(torch, c.dtype), c.state[0]).named_parameters())
    for report in reports:
        for name, p in like.items():
            if report[f"gradient of {name}"] is None:
                report[f"gradient of {name}"] = torch.zeros_like(p.detach())
    return reports
