"""Comparison of an expected and an actual value: the first difference, by place and value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from grader.core.values import Opaque, describe, dtype_name, show, with_article
from grader.core.verdict import Diagnosis

__all__ = ["Difference", "compare", "differing_bits", "tolerance", "wrong_elements"]


#: Keys of a mapping: that of the entry called "the result", and the prefix of gradients.
RESULT, GRADIENT = "result", "gradient of "


@dataclass(frozen=True)
class Difference:
    """The first place where an answer differs from what is expected.

    ``message`` continues a sentence that begins with "rank 2: ".
    """

    diagnosis: Diagnosis
    message: str


def tolerance(dtype: torch.dtype, terms: int) -> float:
    """Return how far a reduction of ``terms`` values may be off, relative to their size.

    k roundings in any order make a relative error of at most
    γ_k = k·u / (1 − k·u) with the unit roundoff u = eps/2 (Higham, *Accuracy
    and Stability of Numerical Algorithms*, 2nd ed., section 3.1).  A sum or a
    product of n numbers takes n − 1, an average one more for the division, and
    the oracle's own result is rounded once: k = n + 1.  Integers may not be
    off at all.
    """
    if not dtype.is_floating_point:
        return 0.0
    error = (terms + 1) * torch.finfo(dtype).eps / 2
    return error / (1 - error)


def compare(
    expected: Any,
    actual: Any,
    terms: int = 0,
    scale: Any = None,
    name: str = "",
    relative: float = 0.0,
) -> Difference | None:
    """Return the first difference between an expected and an actual value, or None.

    Args:
        expected: the oracle's value: tensors, numbers, strings, ``None``, and
            lists, tuples and mappings of these.  A tuple is as good as a list.
        actual: the rank's value.
        terms: the number of values that were reduced into each element; 0 where data is
            only moved, and then every bit must agree.
        scale: for reductions, a tensor like ``expected`` that bounds the sum
            of the magnitudes that went into each element; cancellation makes
            the result smaller than its rounding error.  Defaults to
            ``expected`` itself.
        name: the name of the value in a message; "the result" if empty.
        relative: how far a plain number with a decimal point may be off, relative
            to its size or to that of ``scale``; a whole number is then as good.  At 0 it
            must be the exact number.
    """
    return _compare(expected, actual, _Slack(terms, relative), scale, name)


@dataclass(frozen=True)
class _Slack:
    terms: int
    relative: float


def _compare(expected: Any, actual: Any, slack: _Slack, scale: Any, path: str) -> Difference | None:
    if isinstance(expected, torch.Tensor):
        return _compare_tensor(expected, actual, slack.terms, scale, path)
    if isinstance(expected, (list, tuple)):
        return _compare_sequence(expected, actual, slack, scale, path)
    if isinstance(expected, Mapping):
        return _compare_mapping(expected, actual, slack, scale, path)
    if slack.relative and isinstance(expected, float):
        return _compare_number(expected, actual, slack.relative, scale, path)
    if expected is None:
        if actual is None:
            return None
        return Difference(
            Diagnosis.WRONG_TYPE, f"{_subject(path)} should be None, but is {describe(actual)}"
        )
    # Python takes a bool for an int, but True is no rank, and 2.0 is no count
    if type(actual) is not type(expected):
        return Difference(
            Diagnosis.WRONG_TYPE,
            f"{_subject(path)} should be {_with_value(expected)}, but is {describe(actual)}",
        )
    if actual != expected:
        return Difference(
            Diagnosis.WRONG_VALUE,
            f"{_subject(path)} should be {expected!r}, but is {show(actual)}",
        )
    return None


def _with_value(expected: Any) -> str:
    return f"{with_article(type(expected).__name__)} ({expected!r})"


def _subject(path: str) -> str:
    return path or "the result"


def _compare_number(
    expected: float, actual: Any, relative: float, scale: Any, path: str
) -> Difference | None:
    if type(actual) not in (int, float):
        return Difference(
            Diagnosis.WRONG_TYPE,
            f"{_subject(path)} should be a number ({expected:.5g}), but is {describe(actual)}",
        )
    size = abs(expected) if scale is None else scale
    try:
        number = float(actual)
    except OverflowError:  # Python's integers have no largest one
        number = math.inf if actual > 0 else -math.inf
    # infinity minus infinity is not a number, and no number is near to infinity
    finite = math.isfinite(expected) and math.isfinite(number)
    if actual == expected or (finite and abs(number - expected) <= relative * size):
        return None
    want, got = _apart(expected, number)
    return Difference(Diagnosis.WRONG_VALUE, f"{_subject(path)} should be {want}, but is {got}")


def _apart(one: float, other: float) -> tuple[str, str]:
    """Return two numbers with as few digits, from five on, as show that they differ."""
    for digits in range(5, 17):
        texts = f"{one:.{digits}g}", f"{other:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)


def _compare_sequence(
    expected: Any, actual: Any, slack: _Slack, scale: Any, path: str
) -> Difference | None:
    pair = isinstance(expected, tuple) and len(expected) == 2
    wanted = "a pair" if pair else f"a list of {len(expected)}"
    if not isinstance(actual, (list, tuple)):
        return Difference(
            Diagnosis.WRONG_TYPE,
            f"{_subject(path)} should be {wanted}, but is {describe(actual)}",
        )
    if len(actual) != len(expected):
        return Difference(
            Diagnosis.WRONG_SHAPE,
            f"{_subject(path)} should be {wanted}, but has {len(actual)} entries",
        )
    for i, (want, got) in enumerate(zip(expected, actual, strict=True)):
        part = scale[i] if isinstance(scale, (list, tuple)) else None
        found = _compare(want, got, slack, part, f"entry {i}" if not path else f"{path}[{i}]")
        if found:
            return found
    return None


def _compare_mapping(
    expected: Any, actual: Any, slack: _Slack, scale: Any, path: str
) -> Difference | None:
    wanted = f"{_subject(path)} should hold {', '.join(map(str, expected))}, but"
    if not isinstance(actual, Mapping):
        return Difference(Diagnosis.WRONG_TYPE, f"{wanted} is {describe(actual)}")
    # what is there comes first: a report that ends early ends after what is wrong
    for key in [key for key in expected if key in actual]:
        part = scale[key] if isinstance(scale, Mapping) else None
        name = "" if key == RESULT else str(key)
        found = _compare(
            expected[key], actual[key], slack, part, f"{path}.{name}" if path else name
        )
        if found and str(key).startswith(GRADIENT):
            return Difference(Diagnosis.WRONG_GRADIENT, found.message)
        if found:
            return found
    lacking = [str(key) for key in expected if key not in actual]
    more = [str(key) for key in actual if key not in expected]
    if lacking or more:
        amiss = f"lacks {', '.join(lacking)}" if lacking else f"holds {', '.join(more)}, too"
        return Difference(Diagnosis.WRONG_TYPE, f"{wanted} {amiss}")
    return None


def _compare_tensor(
    expected: torch.Tensor, actual: Any, terms: int, scale: Any, path: str
) -> Difference | None:
    subject = _subject(path)
    if isinstance(actual, Opaque) or not isinstance(actual, torch.Tensor):
        return Difference(
            Diagnosis.WRONG_TYPE,
            f"{subject} should be {describe(expected)}, but is {describe(actual)}",
        )
    if actual.shape != expected.shape:
        return Difference(
            Diagnosis.WRONG_SHAPE,
            f"{subject} should have shape {tuple(expected.shape)}, but has {tuple(actual.shape)}",
        )
    if actual.dtype != expected.dtype:
        return Difference(
            Diagnosis.WRONG_DTYPE,
            f"{subject} should be {dtype_name(expected.dtype)}, but is {dtype_name(actual.dtype)}",
        )
    wrong = wrong_elements(expected, actual, terms, scale)
    if not bool(wrong.any()):
        return None
    return Difference(Diagnosis.WRONG_VALUE, _wrong_value(expected, actual, wrong, subject))


def wrong_elements(
    expected: torch.Tensor, actual: torch.Tensor, terms: int, scale: Any
) -> torch.Tensor:
    """Return a mask of the elements that differ by more than is allowed."""
    same = actual == expected
    if not expected.dtype.is_floating_point:
        return ~same
    same |= torch.isnan(actual) & torch.isnan(expected)
    if terms:
        size = (scale if isinstance(scale, torch.Tensor) else expected).double().abs()
        error = (actual.double() - expected.double()).abs()
        same |= error <= tolerance(expected.dtype, terms) * size
    return ~same


def _wrong_value(
    expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor, subject: str
) -> str:
    count, of = int(wrong.sum()), wrong.numel()
    first = int(wrong.flatten().nonzero()[0])
    index = list(torch.unravel_index(torch.tensor(first), expected.shape))
    place = ", ".join(str(int(i)) for i in index)
    want, got = expected.flatten()[first], actual.flatten()[first]
    where = f"element [{place}]" if expected.dim() else "the value"
    others = "" if of == 1 else f"; {count} of {of} elements are wrong"
    return f"{where} of {subject} should be {show(want)}, but is {show(got)}{others}"


def differing_bits(one: Any, other: Any) -> str | None:
    """Return where two results differ that should have the same bits, or None.

    The text is such as "element [3]: 0.30000001 and 0.3".  Zeros of either sign are equal numbers
    and differ here; every not-a-number is the same as every other.
    """
    if isinstance(one, (list, tuple)):
        pairs = zip(one, other, strict=True)
        found = ((i, differing_bits(a, b)) for i, (a, b) in enumerate(pairs))
        return next((f"entry {i}, {text}" for i, text in found if text), None)
    wrong = wrong_elements(one, other, 0, None)
    if one.dtype.is_floating_point:
        wrong |= torch.signbit(one) ^ torch.signbit(other) & ~torch.isnan(one)
    if not bool(wrong.any()):
        return None
    first = int(wrong.flatten().nonzero()[0])
    index = torch.unravel_index(torch.tensor(first), one.shape)
    a, b = one.flatten()[first].item(), other.flatten()[first].item()
    digits = 17 if one.dtype == torch.float64 else 9
    place = ", ".join(str(int(i)) for i in index)
    return f"element [{place}]: {a:.{digits}g} and {b:.{digits}g}"
