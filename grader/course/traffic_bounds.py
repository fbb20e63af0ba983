"""What ranks must have been told, judging by what they hold: a bound that no algorithm beats.

Inputs are random (:class:`grader.course.cases.Draw`), so a rank that holds what others
brought either was told or was lucky.  How much luck it takes is known: each
element counts for as many bits as its likeliest value is improbable, rounded
down.  What a rank could do with :data:`LUCK` bits less is not counted, and so
an answer that was told less than the bound is right by chance once in 2³² times
at most.  The bound is for all roads together, and counts what arrives only: it
holds for every algorithm, for whatever dtype the messages have, and however well
they are packed.

No bound is declared where a rank computes the result from its own arguments
(``who_am_i``, ``neighbours``, ``ping_pong``, ``ring_schedule``, ``stuck_ranks``,
``stuck_ranks_any_all``,
and chapters 10, 13 and 16), where there is no result (``barrier``), and where it is a
single number (``unblock_branch``), which a wrong answer can meet by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from grader.course.cases import Case
from grader.course.oracles import op_name

__all__ = ["LUCK", "combined", "moved"]

#: Bits that a rank may have guessed.
LUCK = 32

#: Bits of a number that was drawn, and that has to agree bit by bit.  An integer is one
#: of 199.  A floating-point number is made of 32 bits; of the narrower ones, the
#: likeliest lie below 2, where they are 2⁻²³ and 2⁻⁷ apart.
_DRAWN = {torch.int64: 7, torch.float64: 31, torch.float32: 24, torch.bfloat16: 8}

#: Bits of a sum, a mean or a product, for one who knows all terms but one: it may be off
#: by some roundings of every term (:func:`grader.core.compare.tolerance`).
_COMBINED = {torch.int64: 7, torch.float64: 24, torch.float32: 8, torch.bfloat16: 1}

#: The same of a product of integers: each is ±1 or ±2.
_FACTOR = 2


def moved(case: Case, expected: Sequence[Any]) -> int:
    """Bytes that all ranks together must receive if each has to hold ``expected``.

    For exercises that move data.  Numbers that a rank finds among its own
    arguments it need not receive.
    """
    return _bytes(_strange(case, expected, _DRAWN))


def combined(case: Case, expected: Sequence[Any]) -> int:
    """The same for exercises that reduce data: by ``case.op``, or in the way of a sum.

    The smallest and the largest may be a rank's own, so they do not count.
    """
    op = op_name(case.op) if "op" in case.columns else "SUM"
    if op in ("MIN", "MAX"):
        return 0
    worth = {**_COMBINED, torch.int64: _FACTOR} if op == "PRODUCT" else _COMBINED
    return _bytes(_strange(case, expected, worth))


def _bytes(bits: Iterator[int]) -> int:
    # luck is each rank's own: where all must hold the same, one guess would do for all
    return sum(max(0, told - LUCK) for told in bits) // 8


def _strange(
    case: Case, expected: Sequence[Any], worth: Mapping[torch.dtype, int]
) -> Iterator[int]:
    """For every rank, the bits of what it should hold and cannot find among its arguments."""
    for rank in case.ranks:
        own = [t.flatten() for t in _tensors(case.arguments(rank))]
        yield sum(
            worth.get(tensor.dtype, 0) * _new(tensor, [t for t in own if t.dtype == tensor.dtype])
            for tensor in _tensors(expected[rank])
        )


def _new(tensor: torch.Tensor, own: Sequence[torch.Tensor]) -> int:
    """How many elements are none of these; float64 holds every number that is drawn."""
    known = torch.cat([tensor.new_empty(0), *own]).double()
    return int((~torch.isin(tensor.double(), known)).sum())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
