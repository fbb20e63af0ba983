"""The inputs of an exercise: what each rank is called with, drawn from a seed.

Reductions, which many exercises are about, have helpers for their inputs and one-line oracles;
like all cases, they are made in the judge only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from headcount.core.values import dtype_name, tagged, with_article
from headcount.launch.world import Delay, Kill, Pause

__all__ = [
    "OPS",
    "Case",
    "Draw",
    "Kind",
    "Large",
    "PerRank",
    "demo",
    "from_roots",
    "kinds",
    "magnitude",
    "nbytes",
    "op_name",
    "reduced",
    "reductions",
    "tag_lists",
    "tags",
]


#: Weight of each byte of a word in the sum of the bytes plus the word as a fraction.
_BELL = 1 + 2.0 ** np.array((-32, -24, -16, -8))

#: One over the standard deviation of the sum of four bytes.
_SPREAD = math.sqrt(3) / 256

#: Numbers that programs take for "missing" or "nothing", or that stay when they are multiplied by
#: zero, and how many numbers there is one of each among.
_SPECIAL, _SELDOM = np.array((-0.0, np.inf, -np.inf, np.nan, 0.0)), 7

#: What makes numbers larger than those that a search for a minimum or maximum begins with.
_FAR = 2**33


class PerRank(list[Any]):
    """An argument with a value for every rank."""


@dataclass(frozen=True)
class Kind:
    """A dtype and a shape.

    Attributes:
        special: whether zeros of both signs, infinities and NaNs are among the numbers, in other
            places in each draw.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    special: bool = False

    def __str__(self) -> str:
        name = dtype_name(self.dtype)
        if self.shape == ():
            return f"{with_article(name)} scalar"
        if 0 in self.shape:
            return f"no {name} numbers"
        return f"{'×'.join(map(str, self.shape))} {name} number{'s' * (self.shape != (1,))}"


def kinds(n: int) -> tuple[Kind, ...]:
    """Return dtypes and shapes for exercises that move data between ``n`` ranks.

    There are 1-D and 2-D shapes, with none, one and many elements, and with as many as
    there are ranks, one fewer and one more.  The plainest come first, since hints are
    chosen by the first failures.  No two are alike, whatever ``n`` is, and none of integers
    or bfloat16 is so short that two ranks could draw the same numbers by chance.
    """
    return (
        Kind(torch.float32, (7,)),
        Kind(torch.int64, (3, 5)),
        Kind(torch.float32, (1,)),
        Kind(torch.float64, (1000,), special=True),
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

    Attributes:
        killed: the rank that the grader kills, if it does.
        late: the ranks that the grader lets enter late.
        held: the ranks that it stops between two calls of the store.
        network: if given, the ranks are simulated, on a virtual clock: a message of b bytes takes
            α + b·β seconds, and these are α and β.  Computing takes no time but ``time.sleep``,
            by which an adapter says how long something would take.
        pauses: what the judge does each time that the adapter lets the ranks pause.  The point of
            the exercise is confirmed from outside then: an answer that fails the case misses it.
        secrets: attributes that the oracle has, in place of columns of the same names, and that no
            rank is told.
    """

    name: str
    n: int
    columns: Mapping[str, Any]
    killed: Kill | None = None
    late: tuple[Delay, ...] = ()
    held: tuple[Delay, ...] = ()
    network: tuple[float, float] | None = None
    pauses: tuple[Pause, ...] = ()
    secrets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ranks(self) -> range:
        """All ranks, 0 … n − 1."""
        return range(self.n)

    def __getattr__(self, name: str) -> Any:
        try:
            secrets = self.__dict__["secrets"]
            return secrets[name] if name in secrets else self.__dict__["columns"][name]
        except KeyError:
            raise AttributeError(f"case {self.__dict__.get('name')!r} has no {name!r}") from None

    def roots(self) -> dict[int, str]:
        """Return the ranks that the arguments name as the source or the destination."""
        words = ("src", "dst")
        return {self.columns[word]: word for word in words if word in self.columns}

    def arguments(self, rank: int) -> tuple[Any, ...]:
        """Return what ``rank`` is called with, in the order of the signature."""
        return tuple(
            column[rank] if isinstance(column, PerRank) else column
            for column in self.columns.values()
        )


def tags(n: int, count: int) -> PerRank:
    """Return a tensor of ``count`` tags for every rank, see :class:`headcount.core.values.Tag`."""
    return PerRank(tagged(rank, range(count), n) for rank in range(n))


def tag_lists(n: int) -> PerRank:
    """Return a list of ``n`` tensors of one tag each for every rank."""
    return PerRank(list(tensor.split(1)) for tensor in tags(n, n))


def demo(n: int, **arguments: Any) -> Case:
    """Return the case of a replay; its data are tags, so that readers can follow each element."""
    return Case("demo", n, arguments)


class Draw:
    """Draws the inputs of one exercise at one world size.

    The same seed, exercise and size give the same inputs everywhere: the bits
    are SHAKE256's, and they become numbers by integer arithmetic and single
    roundings only, so that no version of torch, numpy or a mathematical library
    can change a value.  Knowing some of the values does not help to predict others
    without the seed: all bits of the seed count, and no attack is known that is
    faster than trying all seeds.

    Values are random; shapes, roots and other choices that decide what a case
    tests are not, so that what is caught once is caught always.

    The first case is made for reading: the numbers that :meth:`per_rank` and :meth:`chunks`
    draw for it show which rank and element each one is.  Rank r's element i is 10·r + i, and
    element i of its chunk j is 100·r + 10·j + i; with more than ten elements there are more
    zeros.  Where ranks are added up, rank r holds 10^r, 2·10^r, 3·10^r and 4·10^r in turn,
    so that a sum of 1121 has rank 1 twice; for a mean it holds n times as much, so that the
    mean reads like the sum.

    Args:
        seed: of the check; a grading's has 128 bits.
        exercise: name of the exercise.
        n: world size.
    """

    def __init__(self, seed: int, exercise: str, n: int) -> None:
        self.n = n
        self._key = f"{seed}/{exercise}/{n}"
        self._draws = 0
        self._cases = 0

    @property
    def ranks(self) -> range:
        """All ranks, 0 … n − 1."""
        return range(self.n)

    def tensor(self, kind: Kind) -> torch.Tensor:
        """Draw random numbers: nearly normal ones, or integers from −99 to 99."""
        words = self._random_words(kind)
        if kind.dtype.is_floating_point:
            numbers = _nearly_normal(words)
            if kind.special:
                places = slice(self._draws % _SELDOM, None, _SELDOM)
                numbers[places] = np.resize(_SPECIAL, len(numbers[places]))
            return _tensor(numbers, kind)
        # 199 does not divide 2³²: some integers are likelier than others by one in 2²⁴
        return _tensor((words % 199).astype("i8") - 99, kind)

    def factors(self, kind: Kind) -> torch.Tensor:
        """Draw numbers whose products stay in range: ±1 and ±2, or ±0.5 to ±1.5."""
        words = self._random_words(kind)
        sign = (words & 1).astype("i8") * 2 - 1
        if kind.dtype.is_floating_point:
            return _tensor(sign * (words * 2.0**-32 + 0.5), kind)
        return _tensor(sign * ((words >> 1 & 1) + 1), kind)

    def per_rank(self, kind: Kind | Sequence[Kind], op: str = "") -> PerRank:
        """Draw a tensor for every rank.

        Args:
            kind: dtype and shape, the same on all ranks or one of each.
            op: the reduction over ranks that the tensors are for: ``SUM``, ``PRODUCT``, …
        """
        if isinstance(kind, Kind):
            return PerRank(self._over_ranks(kind, (self.n,), op).unbind())
        lengths = [math.prod(one.shape) for one in kind]
        rows = self._over_ranks(replace(kind[0], shape=(max(lengths),)), (self.n,), op)
        return PerRank(
            row[:length].reshape(one.shape)
            for row, length, one in zip(rows, lengths, kind, strict=True)
        )

    def chunks(self, kind: Kind, op: str = "") -> PerRank:
        """Draw a list of ``n`` tensors for every rank; ``op`` is as in :meth:`per_rank`."""
        return PerRank(list(row) for row in self._over_ranks(kind, (self.n, self.n), op))

    def _over_ranks(self, kind: Kind, ranks: tuple[int, ...], op: str) -> torch.Tensor:
        """Draw a tensor of shape ``(*ranks, *kind.shape)``."""
        whole = replace(kind, shape=(*ranks, *kind.shape))
        numbers = None if self._cases else self._readable((*ranks, math.prod(kind.shape)), op)
        # larger floating-point numbers have gaps, and a wrong 1 would be lost in a sum
        exact = 2 / torch.finfo(kind.dtype).eps if kind.dtype.is_floating_point else 2**62
        if numbers is None or np.abs(numbers).sum(0, initial=0).max(initial=0) > exact:
            drawn = (self.factors if op == "PRODUCT" else self.tensor)(whole)
            if op in ("MIN", "MAX"):
                drawn = _one_sided(drawn, kind, op)
            return _too_large_for_floats(drawn, kind, op) if kind.dtype == torch.int64 else drawn
        self._draws += 1  # so that the draws of later cases stay what they are
        return _tensor(numbers, whole)

    def _readable(self, sizes: tuple[int, ...], op: str) -> npt.NDArray[np.int64] | None:
        """Return numbers that show where they belong, or ``None`` if a reduction allows none.

        Args:
            sizes: numbers of ranks, of their chunks if there are any, and of elements.
        """
        if op in ("SUM", "AVG"):
            if self.n > 16:
                return None  # int64 has no room for them
            digits = (np.arange(math.prod(sizes[1:])) + self._draws) % 4 + 1
            powers = 10 ** np.arange(self.n) * (self.n if op == "AVG" else 1)
            return np.multiply.outer(powers, digits)
        if op == "PRODUCT":
            return None
        number = np.full(sizes, self._draws)  # first, so that no two draws are alike
        for size, index in zip(sizes, np.indices(sizes), strict=True):
            number = number * 10 ** len(str(max(size - 1, 0))) + index
        return number

    def block(self, name: str, count: int) -> torch.Tensor:
        """Draw ``count`` float32 numbers from −1 to 1 that belong to a name.

        They do not depend on what else is drawn, so that a part of very many numbers can be
        drawn again without the others.
        """
        stream = hashlib.shake_128(f"{self._key}/{name}".encode())
        words = np.frombuffer(stream.digest(4 * count), "<i4")
        return torch.from_numpy(words.astype("f4") * np.float32(2.0**-31))

    def _random_words(self, kind: Kind) -> npt.NDArray[np.uint32]:
        """Draw 32 random bits for every element; each call draws others."""
        self._draws += 1
        stream = hashlib.shake_256(f"{self._key}/{self._draws}".encode())
        return np.frombuffer(stream.digest(4 * math.prod(kind.shape)), "<u4")

    def with_roots(self, kinds: Iterable[Kind]) -> Iterator[tuple[Kind, int]]:
        """Yield each kind with a root; the roots cycle through all ranks from the last one on."""
        for i, kind in enumerate(kinds):
            yield kind, (self.n - 1 + i) % self.n

    def case(self, name: str, **arguments: Any) -> Case:
        """Make a case with these arguments, in the order of the signature."""
        self._cases += 1
        return Case(name, self.n, arguments)


class Large:
    """Random numbers that are too many to be returned, of which some places are shown.

    They are told in a pause, when no line of the answer can have seen them before.  Which places
    it has to show it learns in a later pause, so that until then it has to hold all.

    Args:
        draw: draws them.
        numel: how many they are, a multiple of 65,536.
    """

    _BLOCK, _BLOCKS, _SHOWN = 4096, 16, 32

    def __init__(self, draw: Draw, numel: int) -> None:
        self._draw = draw
        self.numel = numel
        each = numel // self._BLOCK // self._BLOCKS
        drawn = (draw.tensor(Kind(torch.int64, (self._BLOCKS, 2))) + 99).tolist()
        self._starts = [
            (i * each + block % each) * self._BLOCK + place * self._SHOWN % self._BLOCK
            for i, (block, place) in enumerate(drawn)
        ]
        #: the places that are shown
        self.places = torch.cat([torch.arange(i, i + self._SHOWN) for i in self._starts])

    def whole(self, name: str) -> torch.Tensor:
        """Return all numbers of a name."""
        return torch.cat([self._block(name, i) for i in range(self.numel // self._BLOCK)])

    def shown(self, name: str) -> torch.Tensor:
        """Return those that are shown, without drawing the others."""
        places = (divmod(start, self._BLOCK) for start in self._starts)
        return torch.cat([self._block(name, block)[i : i + self._SHOWN] for block, i in places])

    def _block(self, name: str, number: int) -> torch.Tensor:
        return self._draw.block(f"{name} {number}", self._BLOCK)


def _nearly_normal(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """Turn words into numbers of mean 0 and variance 1 that are nearly normal.

    A word's four bytes are uniform, and the sum of four such numbers is nearly normal,
    without a logarithm or a cosine, whose last bit depends on the library.  The word
    itself is added as a fraction, so that different words give different numbers.  All
    is exact except for the last product, so the order of additions does not matter.
    """
    octets = words.view("u1").reshape(-1, 4)
    bell: npt.NDArray[np.float64] = (octets @ _BELL - 510.5) * _SPREAD
    return bell


def _too_large_for_floats(drawn: torch.Tensor, kind: Kind, op: str) -> torch.Tensor:
    """Return integers of which every third is too large for a float64, and as many for a float32.

    What floating-point numbers would make of them, or of their reduction over all ranks or all but
    one, is wrong whatever was drawn: the low bits see to it.
    """
    count = math.prod(kind.shape)
    least = torch.tensor([2**53, 2**24, 0]).repeat(count // 3 + 1)[:count].reshape(kind.shape)
    low = torch.ones(drawn.shape[0], dtype=torch.int64)
    if op in ("SUM", "PRODUCT"):
        low[1:] = 0
    if op == "SUM":
        low[1:2] = 2
    low = low.reshape(-1, *[1] * (drawn.dim() - 1))
    if op == "PRODUCT":
        return torch.where(least * low > 0, drawn * (least + 1), drawn)
    return torch.where(least > 0, least + 4 * (drawn + 100) + low, drawn)


def _one_sided(drawn: torch.Tensor, kind: Kind, op: str) -> torch.Tensor:
    """Return numbers for a minimum or maximum that no start but the first number is right for.

    Of each four elements the first is as drawn, the second far above 0 on all ranks, the third far
    below; and the fourth, where the dtype has one, the infinity that every number replaces.
    """
    flat = drawn.flatten(-len(kind.shape))
    far = (flat.abs() + 1) * _FAR
    flat[..., 1::4], flat[..., 2::4] = far[..., 1::4], -far[..., 2::4]
    if kind.dtype.is_floating_point:
        flat[..., 3::4] = math.inf if op == "MIN" else -math.inf
    return flat.reshape(drawn.shape)


def _tensor(numbers: npt.NDArray[Any], kind: Kind) -> torch.Tensor:
    if kind.dtype == torch.float32:  # the same as below, but faster, and frequent
        numbers = numbers.astype("f4")
    return torch.from_numpy(numbers.reshape(kind.shape)).to(kind.dtype)


# Reductions: their inputs, and one-line oracles. ----------------------------------

#: The reductions of the course, by name.
OPS = {name: getattr(dist.ReduceOp, name) for name in ("SUM", "AVG", "MIN", "MAX", "PRODUCT")}


def reductions(n: int) -> tuple[tuple[str, Kind], ...]:
    """Return every reduction on floating-point numbers, and all but AVG on integers.

    The lengths are those of :func:`kinds`.  A sum of integers comes first,
    since in it no wrong digit can be taken for rounding.  Products of integers have several
    elements, since 2 + 2 is 2 · 2.
    """
    return (
        ("SUM", Kind(torch.int64, (7,))),
        ("AVG", Kind(torch.float64, (3, 5))),
        ("MIN", Kind(torch.int64, (n + 1,))),
        ("MAX", Kind(torch.float32, (2, 4))),
        ("PRODUCT", Kind(torch.int64, (5,))),
        ("SUM", Kind(torch.int64, (1,))),
        ("AVG", Kind(torch.float32, (n - 1,))),
        ("PRODUCT", Kind(torch.float64, (n,))),
        ("SUM", Kind(torch.bfloat16, (1000,), special=True)),
        ("SUM", Kind(torch.float32, (0,))),
    )


def op_name(op: dist.ReduceOp) -> str:
    """Return ``SUM`` for ``dist.ReduceOp.SUM``, and so on."""
    return next(name for name, known in OPS.items() if known == op)


def nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()


def reduced(op: dist.ReduceOp, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the reduction of tensors of one shape and dtype.

    Floating-point numbers are reduced in float64, so the result is rounded
    once; integers are reduced exactly.

    Raises:
        ValueError: integers are to be averaged.
    """
    dtype = tensors[0].dtype
    wide = torch.float64 if dtype.is_floating_point else dtype
    stack = torch.stack([t.to(wide) for t in tensors])
    name = op_name(op)
    if name == "AVG" and not dtype.is_floating_point:
        raise ValueError("AVG is defined for floating-point numbers only")
    result = {
        "SUM": lambda: stack.sum(0),
        "AVG": lambda: stack.mean(0),
        "MIN": lambda: stack.amin(0),
        "MAX": lambda: stack.amax(0),
        "PRODUCT": lambda: stack.prod(0),
    }[name]()
    return result.to(dtype)


def magnitude(op: dist.ReduceOp, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return how large the terms of a reduction are, which rounding errors are relative to."""
    name = op_name(op)
    if name in ("MIN", "MAX"):
        return torch.zeros_like(tensors[0])
    return reduced(op, [t.abs() for t in tensors])


def from_roots(draw: Draw) -> Iterator[Case]:
    """Draw tensors that everyone is to have from one rank."""
    for kind, src in draw.with_roots(kinds(draw.n)):
        yield draw.case(f"{kind} from rank {src}", x=draw.per_rank(kind), src=src)
