"""Values that travel between the judge and a rank, and how a message shows them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = [
    "DEEP",
    "FEW_RANKS",
    "MOST_RANKS",
    "Opaque",
    "Tag",
    "UnsentTensor",
    "describe",
    "dtype_name",
    "reduction_name",
    "show",
    "tag_of",
    "tagged",
    "tensors_in",
    "with_article",
]

#: Deepest nesting of lists in an answer.
DEEP = 16

#: Characters that a rank's result takes in a report at most.
SHORT = 72


@dataclass(frozen=True)
class Opaque:
    """A placeholder of a value that cannot be part of an answer.

    Only the value's type and a short text travel, so that a generator, a module or a tensor on
    another device can be named in a message.
    """

    kind: str
    text: str = ""


@dataclass(frozen=True)
class UnsentTensor(Opaque):
    """A placeholder of a tensor that is too large to be part of an answer.

    Nothing can compute with it: a tensor of this shape could take all memory.
    """

    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype without its module: ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def with_article(name: str) -> str:
    """Return the name of a type with its article: ``an int64``, ``a float32``."""
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def describe(value: Any) -> str:
    """Return what kind of value it is, for messages such as "should be …, but is …"."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"{with_article(dtype_name(value.dtype))} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, (list, tuple)):
        return f"{with_article(type(value).__name__)} of {len(value)}"
    if isinstance(value, (bool, int, float, str)):
        return f"the {type(value).__name__} {short(repr(value))}"
    return with_article(type(value).__name__)


def show(value: Any, width: int = SHORT) -> str:
    """Return a value in one short line, with tensors as plain numbers."""
    return short(_show(value), width)


def short(text: str, width: int = SHORT) -> str:
    """Return the text, cut to one line of at most ``width`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _show(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        flat = value.detach().flatten()
        head = flat[:8].tolist()
        numbers = ", ".join(_number(x) for x in head)
        more = f", … ({flat.numel()} in all)" if flat.numel() > len(head) else ""
        if value.dim() == 0:
            return numbers
        shape = f" shape {tuple(value.shape)}" if value.dim() > 1 else ""
        return f"[{numbers}{more}]{shape}"
    if isinstance(value, Opaque):
        return value.text or value.kind
    if isinstance(value, (list, tuple)):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(_show(item) for item in value[:8]) + right
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_show(k)}: {_show(v)}" for k, v in value.items()) + "}"
    return _number(value) if isinstance(value, float) else repr(value)


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.5g}"
    # 1.0 and 1 are different answers
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def tensors_in(value: Any, deep: int = DEEP) -> list[torch.Tensor]:
    """Return every tensor inside a value, in order, down to ``deep`` nested lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    if deep == 0:
        return []
    if isinstance(value, (list, tuple)):
        found = []
        for item in value:
            # nearly always, and so without a call
            if isinstance(item, torch.Tensor):
                found.append(item)
            else:
                found += tensors_in(item, deep - 1)
        return found
    if isinstance(value, Mapping):
        return [t for item in value.values() for t in tensors_in(item, deep - 1)]
    return []


def reduction_name(reduction: Any) -> str:
    """Return the name of a reduction, such as ``SUM``, for all of torch's types of reductions."""
    inner = getattr(reduction, "op", reduction)
    return str(getattr(inner, "name", inner))


# Tags: numbers that show where they come from, after any number of copies and sums. ----
#
# The element ``i`` of rank ``r`` is the float64 number ``16**(r + 1) + i * 2**36``.  In
# a sum, each hexadecimal digit of the lower part counts how often a rank's
# element went in, the last one what else was added, and the upper part is ``i`` times
# the number of terms.  So the contents of any cell can be read off its value: ``A2``,
# ``A0+B0``, ``A0+1``, and also the mistakes, ``A0+A0`` or ``A1+B2``.
#
# Of more than eight ranks a count has two bits, and the number of terms is summed as well: where a
# rank went in four times, the counts do not add up to it, and no rank is named.

#: Ranks whose counts have four bits.
FEW_RANKS = 8

#: Largest number of ranks that have tags.
MOST_RANKS = 16

#: The letters of the ranks, without those that look like digits.
LETTERS = "ABCDEFGHJKLMNPQR"

_SHIFT = 2**36
_MOST_PLACES = 2**12

#: Of more than eight ranks: what one term counts, and the places of that many terms.
_TERM, _MANY_SHIFT = 2**36, 2**42


@dataclass(frozen=True)
class Tag:
    """The elements that a number is the sum of.

    Attributes:
        owners: their ranks, lowest first, each as often as it contributed.
        place: the index of the elements; None if elements of several indices were mixed.
        plus: a plain number that was added.
        brief: whether neighbours among many owners are written as ``A…D``.
    """

    owners: tuple[int, ...]
    place: int | None
    plus: int = 0
    brief: bool = False

    def __str__(self) -> str:
        return self._terms() + (f"+{self.plus}" if self.plus else "")

    def _terms(self) -> str:
        place = "?" if self.place is None else str(self.place)
        if len(self.owners) <= 3:
            return "+".join(f"{LETTERS[rank]}{place}" for rank in self.owners)
        low, high = self.owners[0], self.owners[-1]
        if self.owners == tuple(range(low, high + 1)):
            return f"{LETTERS[low]}…{LETTERS[high]}{place}"
        if self.brief:
            return "+".join(self._stretches()) + place
        return "".join(LETTERS[rank] for rank in self.owners) + place

    def _stretches(self) -> Iterator[str]:
        start = 0
        for i, rank in enumerate(self.owners, 1):
            if i == len(self.owners) or self.owners[i] != rank + 1:
                letters = "".join(LETTERS[of] for of in self.owners[start:i])
                yield letters if len(letters) < 3 else f"{letters[0]}…{letters[-1]}"
                start = i


def tagged(rank: int, places: Sequence[int] | range, ranks: int = FEW_RANKS) -> torch.Tensor:
    """Return the tagged elements of one of some ranks with these indices, as a float64 tensor.

    Raises:
        ValueError: there are more ranks than :data:`MOST_RANKS`, or no such rank among them.
    """
    ranks = max(ranks, FEW_RANKS)
    if not 0 <= rank < ranks <= MOST_RANKS:
        raise ValueError(f"no tag for rank {rank} of {ranks}: there are {MOST_RANKS}")
    one, shift = (
        (16 ** (rank + 1), _SHIFT) if ranks <= FEW_RANKS else (16 * 4**rank + _TERM, _MANY_SHIFT)
    )
    return torch.tensor([float(one + i * shift) for i in places], dtype=torch.float64)


def tag_of(value: float, ranks: int = FEW_RANKS) -> Tag | None:
    """Return the tag of a number among so many ranks; None if it is no sum of tagged elements."""
    if not 0 < value < 2**52 or value != int(value):
        return None
    if ranks > FEW_RANKS:
        upper, lower = divmod(int(value), _MANY_SHIFT)
        terms, lower = divmod(lower, _TERM)
        owners = tuple(r for r in range(MOST_RANKS) for _ in range(lower >> 2 * r + 4 & 3))
        if len(owners) != terms:
            return None
    else:
        upper, lower = divmod(int(value), _SHIFT)
        owners = tuple(r for r in range(FEW_RANKS) for _ in range(lower >> 4 * (r + 1) & 15))
    if not owners:
        return None
    place, rest = divmod(upper, len(owners))
    if place >= _MOST_PLACES:
        return None
    return Tag(owners, None if rest else place, lower & 15, brief=ranks > FEW_RANKS)
