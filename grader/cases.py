"""The inputs of an exercise: what each rank is called with, drawn from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from grader.tags import tagged
from grader.values import dtype_name

__all__ = ["Case", "Draw", "Kind", "PerRank", "demo", "kinds", "tag_lists", "tags"]


class PerRank(list[Any]):
    """An argument with a value for every rank."""


@dataclass(frozen=True)
class Kind:
    """A dtype and a shape."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)} {'×'.join(map(str, self.shape)) or 'scalar'}"


def kinds(n: int) -> tuple[Kind, ...]:
    """Dtypes and shapes for exercises that move data between ``n`` ranks.

    1-D and 2-D; none, one and many elements, and as many as there are ranks, one
    fewer and one more.  The plainest come first: what they show is what a hint is
    chosen by.  No two are alike, whatever ``n`` is, and none of integers or
    bfloat16 is so short that two ranks could draw the same numbers by chance.
    """
    return (
        Kind(torch.float32, (7,)),
        Kind(torch.int64, (3, 5)),
        Kind(torch.float32, (1,)),
        Kind(torch.float64, (1000,)),
        Kind(torch.float32, (0,)),
        Kind(torch.float64, (n - 1,)),
        Kind(torch.bfloat16, (n,)),
        Kind(torch.int64, (n + 1,)),
    )


@dataclass(frozen=True)
class Case:
    """One input of an exercise, for all ranks of a world of size ``n``.

    Arguments are attributes: lists over ranks if they were given as
    :class:`PerRank`, the common value otherwise.
    """

    name: str
    n: int
    columns: Mapping[str, Any]

    @property
    def ranks(self) -> range:
        """0 … n − 1."""
        return range(self.n)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["columns"][name]
        except KeyError:
            raise AttributeError(f"case {self.__dict__.get('name')!r} has no {name!r}") from None

    def arguments(self, rank: int) -> tuple[Any, ...]:
        """What ``rank`` is called with, in the order of the signature."""
        return tuple(
            column[rank] if isinstance(column, PerRank) else column
            for column in self.columns.values()
        )


def tags(n: int, count: int) -> PerRank:
    """For every rank a tensor of ``count`` :mod:`grader.tags`."""
    return PerRank(tagged(rank, range(count)) for rank in range(n))


def tag_lists(n: int) -> PerRank:
    """For every rank a list of ``n`` tensors of one tag each."""
    return PerRank(list(tensor.split(1)) for tensor in tags(n, n))


def demo(n: int, **arguments: Any) -> Case:
    """The case of a replay: its data are tags, so that their way can be followed."""
    return Case("demo", n, arguments)


class Draw:
    """Draws the inputs of one exercise at one world size.

    The same seed, exercise and size give the same inputs everywhere.  Values
    are random; shapes, roots and other choices that decide what a case tests
    are not, so that what is caught once is caught always.

    Args:
        seed: of the check.
        exercise: name of the exercise.
        n: world size.
    """

    def __init__(self, seed: int, exercise: str, n: int) -> None:
        self.n = n
        digest = hashlib.sha256(f"{seed}/{exercise}/{n}".encode()).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

    @property
    def ranks(self) -> range:
        """0 … n − 1."""
        return range(self.n)

    def tensor(self, kind: Kind) -> torch.Tensor:
        """Random numbers: normal ones, or integers from −99 to 99."""
        if kind.dtype.is_floating_point:
            return torch.randn(kind.shape, generator=self._generator).to(kind.dtype)
        return torch.randint(-99, 100, kind.shape, generator=self._generator).to(kind.dtype)

    def factors(self, kind: Kind) -> torch.Tensor:
        """Numbers whose products stay in range: ±1 and ±2, or 0.5 to 1.5 and negated."""
        sign = torch.randint(0, 2, kind.shape, generator=self._generator) * 2 - 1
        if kind.dtype.is_floating_point:
            size = torch.rand(kind.shape, generator=self._generator) + 0.5
        else:
            size = torch.randint(1, 3, kind.shape, generator=self._generator)
        return (sign * size).to(kind.dtype)

    def per_rank(self, kind: Kind, draw: Callable[[Kind], torch.Tensor] | None = None) -> PerRank:
        """A random tensor for every rank."""
        return PerRank((draw or self.tensor)(kind) for _ in self.ranks)

    def with_roots(self, kinds: Iterable[Kind]) -> Iterator[tuple[Kind, int]]:
        """Each kind with a root; the roots go round all ranks, the last one first."""
        for i, kind in enumerate(kinds):
            yield kind, (self.n - 1 + i) % self.n

    def case(self, name: str, **arguments: Any) -> Case:
        """A case with these arguments, in the order of the signature."""
        return Case(name, self.n, arguments)
