"""Comparison of an expected and an actual value: the first difference, and both side by side.

The first difference is said by place and value; side by side, all that differs is marked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.exercise.verdict import RankRow
from headcount.core.values import (
    Opaque,
    UnsentTensor,
    describe,
    dtype_name,
    short,
    show,
    with_article,
)
from headcount.core.verdict import Diagnosis

__all__ = ["Difference", "compare", "differing_bits", "side_by_side", "tolerance", "wrong_elements"]


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
    """What counts as equal, see :func:`compare`."""

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
    if actual != expected and not (expected != expected and actual != actual):  # both NaN
        return Difference(
            Diagnosis.WRONG_VALUE,
            f"{_subject(path)} should be {_value(expected)}, but is {show(actual)}",
        )
    return None


def _with_value(expected: Any) -> str:
    if isinstance(expected, Opaque):
        return show(expected)
    return f"{with_article(type(expected).__name__)} ({expected!r})"


def _value(value: Any) -> str:
    return show(value) if isinstance(value, Opaque) else repr(value)


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
    same = actual == expected or (math.isnan(expected) and math.isnan(number))
    if same or (finite and abs(number - expected) <= relative * size):
        return None
    want, got = _told_apart(expected, number)
    return Difference(Diagnosis.WRONG_VALUE, f"{_subject(path)} should be {want}, but is {got}")


def _told_apart(one: float, other: float) -> tuple[str, str]:
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
            Diagnosis.WRONG_TYPE, f"{_subject(path)} should be {wanted}, but is {describe(actual)}"
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
    if not isinstance(actual, Mapping):
        wanted = f"{_subject(path)} should hold {', '.join(map(str, expected))}"
        return Difference(Diagnosis.WRONG_TYPE, f"{wanted}, but is {describe(actual)}")
    # what is there comes first: a report that ends early ends after what is wrong
    for key in [key for key in expected if key in actual]:
        part = scale.get(key) if isinstance(scale, Mapping) else None
        name = "" if key == RESULT else str(key)
        found = _compare(
            expected[key], actual[key], slack, part, f"{path}.{name}" if path else name
        )
        if found and str(key).startswith(GRADIENT):
            return Difference(Diagnosis.WRONG_GRADIENT, found.message)
        if found:
            return found
    lacking = [show(key) for key in expected if key not in actual]
    more = [show(key) for key in actual if key not in expected]
    if lacking or more:
        amiss = f"lacks {', '.join(lacking)}" if lacking else f"should not hold {', '.join(more)}"
        return Difference(Diagnosis.WRONG_VALUE, f"{_subject(path)} {amiss}")
    return None


def _compare_tensor(
    expected: torch.Tensor, actual: Any, terms: int, scale: Any, path: str
) -> Difference | None:
    subject = _subject(path)
    if not isinstance(actual, (torch.Tensor, UnsentTensor)):
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
    if isinstance(actual, UnsentTensor):
        return Difference(
            Diagnosis.WRONG_SHAPE,
            f"{subject} is more than can be sent, with all that comes with it",
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
        # infinity is near to nothing: it would be within any part of itself
        near = error <= tolerance(expected.dtype, terms) * size
        same |= near & torch.isfinite(error) & torch.isfinite(size)
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
    if isinstance(one, Mapping):
        under = ((key, differing_bits(value, other[key])) for key, value in one.items())
        return next((f"{key}, {text}" for key, text in under if text), None)
    if not isinstance(one, torch.Tensor):
        same = one == other or (one != one and other != other)
        return None if same else f"{show(one)} and {show(other)}"
    wrong = wrong_elements(one, other, 0, None)
    if one.dtype.is_floating_point:
        wrong |= (torch.signbit(one) ^ torch.signbit(other)) & ~torch.isnan(one)
    if not bool(wrong.any()):
        return None
    first = int(wrong.flatten().nonzero()[0])
    index = torch.unravel_index(torch.tensor(first), one.shape)
    a, b = one.flatten()[first].item(), other.flatten()[first].item()
    digits = 17 if one.dtype == torch.float64 else 9
    place = ", ".join(str(int(i)) for i in index)
    return f"element [{place}]: {a:.{digits}g} and {b:.{digits}g}"


# What should be and what is, side by side. ----------------------------------------
#
# Long values are cut around the first difference, so that the two never look alike where they are
# not.

#: Characters of one value in a row, and its elements where they are longer.
_WIDTH, _FEWEST = 34, 3

#: Numbers of elements in words.
_NUMBERS = ("no", "one", "both", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

#: The value of a mapping's key that is not there.
_ABSENT = Opaque("nothing", "nothing")

#: The text of an element, and whether it is wrong.
_Item = tuple[str, bool]


def side_by_side(
    rank: int,
    expected: Any,
    actual: Any,
    terms: int = 0,
    scale: Any = None,
    relative: float = 0.0,
    report: bool = False,
) -> RankRow:
    """Return a rank's row of a report.

    Args:
        rank: the rank.
        expected: what it should hold.
        actual: what it holds.
        terms: the terms of a reduction, and ``scale`` and ``relative``, as in :func:`compare`.
        scale: see ``terms``.
        relative: see ``terms``.
        report: whether a mapping is the grader's report, of which only what is wrong is shown.
    """
    slack = _Slack(terms, relative)
    if not _differ(slack, expected, actual, scale):
        text = "all right" if report and isinstance(actual, Mapping) else _in_brief(actual)
        return RankRow(rank, text, text, True)
    where, expected, actual, scale = _first_difference(slack, expected, actual, scale)
    kind = _other_kind(expected, actual, relative)
    lead = f"{', '.join(where)}: " if where else ""
    if kind:
        text = _in_brief(actual)
        wrong = ((len(lead), len(lead) + len(text)),)
        return RankRow(rank, lead + _in_brief(expected), lead + text, False, wrong, kind)
    noun = "its entry" if "entry" in lead else "entry"
    items, note = _items(slack, expected, actual, scale, noun)
    left, right = _brackets(actual)
    comma = "" if isinstance(actual, torch.Tensor) else ","
    start, stop = _window(items)
    cut_left, cut_right = "… " * (start > 0), " …" * (stop < len(items))
    width = max((len(t) for pair in items[start:stop] for t, _ in pair), default=0) if left else 0
    texts = []
    spans: list[tuple[int, int]] = []
    for side in (0, 1):
        text = f"{lead}{left}{cut_left}"
        for index in range(start, stop):
            item, wrong_here = items[index][side]
            text += " " * (width - len(item)) if not comma else ""
            if side and wrong_here:
                spans.append((len(text), len(text) + len(item)))
            text += item + (f"{comma} " if index + 1 < stop else "")
        texts.append(f"{text}{cut_right}{right}")
    return RankRow(rank, texts[0], texts[1], False, tuple(spans), note)


def _differ(slack: _Slack, expected: Any, actual: Any, scale: Any) -> bool:
    return _compare(expected, actual, slack, scale, "") is not None


def _first_difference(
    slack: _Slack, expected: Any, actual: Any, scale: Any
) -> tuple[list[str], Any, Any, Any]:
    """Return the innermost list or tensor that has the first difference, and the way to it."""
    where: list[str] = []
    key: Any
    while True:
        if isinstance(expected, Mapping):
            if not isinstance(actual, Mapping):
                return where, expected, actual, scale
            parts = dict(scale) if isinstance(scale, Mapping) else {}
            # in the order of the message: what is there, what is lacking, what is too much
            there = [k for k in expected if k in actual]
            wrong = [k for k in there if _differ(slack, expected[k], actual[k], parts.get(k))]
            key = [*wrong, *(expected.keys() - there), *(actual.keys() - expected.keys())][0]
            where += [str(key)] * (key != RESULT)
            if key not in wrong:
                return where, expected.get(key, _ABSENT), actual.get(key, _ABSENT), None
        elif _is_list(expected) and _is_list(actual) and len(expected) == len(actual):
            parts = dict(enumerate(scale if _is_list(scale) else ()))
            if not any(_is_list(e) or isinstance(e, (torch.Tensor, Mapping)) for e in expected):
                return where, expected, actual, scale
            key = next(
                i for i, e in enumerate(expected) if _differ(slack, e, actual[i], parts.get(i))
            )
            where += [f"entry {key}"] * (len(expected) > 1)
        else:
            return where, expected, actual, scale
        expected, actual, scale = expected[key], actual[key], parts.get(key)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _other_kind(expected: Any, actual: Any, relative: float) -> str:
    """Return what kind of value it is and should be; empty if the kinds are the same."""
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        if actual.shape != expected.shape:
            return f"shape {tuple(actual.shape)}, should be {tuple(expected.shape)}"
        if actual.dtype != expected.dtype:
            return f"{dtype_name(actual.dtype)}, should be {dtype_name(expected.dtype)}"
        return ""
    if _is_list(expected) and _is_list(actual):
        if len(expected) == len(actual):
            return ""
        return f"{len(actual)} {_plural('entry', len(actual))}, should be {len(expected)}"
    if actual is _ABSENT or expected is _ABSENT:
        return "missing" if actual is _ABSENT else "not asked for"
    one, other = _kind(expected), _kind(actual)
    # a whole number is as good where a number is compared with a tolerance
    same = one == other or (relative and (one, other) == ("a float", "an int"))
    return "" if same else f"{other}, should be {one}"


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return "a tensor"
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, tuple) and len(value) == 2:
        return "a pair"
    return with_article("dict" if isinstance(value, Mapping) else type(value).__name__)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _items(
    slack: _Slack, expected: Any, actual: Any, scale: Any, noun: str
) -> tuple[list[tuple[_Item, _Item]], str]:
    """Return the elements of both values, side by side, and which of them are wrong, in words."""
    if isinstance(expected, torch.Tensor):
        mask = wrong_elements(expected, actual, slack.terms, scale)
        wrong = mask.flatten().tolist()
        items = [
            ((one, False), (other, bad))
            for bad, (one, other) in zip(
                wrong,
                map(_numbers_apart, expected.flatten().tolist(), actual.flatten().tolist(), wrong),
                strict=True,
            )
        ]
        return items, _places_text(
            wrong, "element", _index(expected.shape)
        ) if expected.dim() else ""
    if _is_list(expected):
        parts = scale if _is_list(scale) else [None] * len(expected)
        wrong = [_differ(slack, *both) for both in zip(expected, actual, parts, strict=True)]
        items = [
            ((show(one, _WIDTH), False), (show(other, _WIDTH), bad))
            for one, other, bad in zip(expected, actual, wrong, strict=True)
        ]
        note = _places_text(wrong, noun, str)
        kinds = {
            _other_kind(one, other, slack.relative)
            for one, other, bad in zip(expected, actual, wrong, strict=True)
            if bad
        }
        # an int and a tensor of it look the same
        return items, ": ".join(filter(None, (note, kinds.pop()))) if len(kinds) == 1 else note
    numbers = isinstance(expected, (int, float)) and isinstance(actual, (int, float))
    one, other = (_numbers_apart if numbers else _both_cut)(expected, actual)
    return [((one, False), (other, True))], ""


def _numbers_apart(one: Any, other: Any, wrong: bool = True) -> tuple[str, str]:
    """Return two numbers with as few digits as tell them apart if they differ."""
    for digits in range(4, 18):
        texts = _number(one, digits), _number(other, digits)
        if not wrong or texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)


def _number(value: Any, digits: int) -> str:
    if isinstance(value, int) and value.bit_length() > 100:
        return f"an int of {value.bit_length()} bits"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _both_cut(one: Any, other: Any) -> tuple[str, str]:
    """Return two texts, cut around the first character in which they differ."""
    texts = _value(one), _value(other)
    if max(map(len, texts)) <= _WIDTH:
        return texts
    same = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    start = max(0, same - _WIDTH // 3)
    first, second = (("…" if start else "") + short(text[start:], _WIDTH - 1) for text in texts)
    return first, second


def _index(shape: Sequence[int]) -> Callable[[int], str]:
    """Return how an element of a tensor is called: ``3``, or ``[1, 2]`` in two dimensions."""

    def name(flat: int) -> str:
        if len(shape) == 1:
            return str(flat)
        places = torch.unravel_index(torch.tensor(flat), tuple(shape))
        return f"[{', '.join(str(int(place)) for place in places)}]"

    return name


def _places_text(wrong: Sequence[bool], noun: str, name: Callable[[int], str]) -> str:
    """Return which elements are wrong: ``all three``, ``element 1``, ``12 of 15 elements``."""
    places = [place for place, bad in enumerate(wrong) if bad]
    count, of = len(places), len(wrong)
    if count == of > 1:
        if of == 2:
            return "both" * (noun != "its entry")  # entries of a pair that is itself an entry
        return f"all {_NUMBERS[of] if of < len(_NUMBERS) else of}"
    if count == 1:
        return f"{noun} {name(places[0])}" if of > 1 else ""
    if count == 2:
        return f"{_plural(noun, 2)} {name(places[0])} and {name(places[1])}"
    return f"{count} of {of} {_plural(noun, of)}, from {name(places[0])} on"


def _window(items: Sequence[tuple[_Item, _Item]]) -> tuple[int, int]:
    """Return the first and the last element that are shown, around the first that is wrong."""
    widths = [max(len(text) for text, _ in pair) for pair in items]

    def fits(start: int, stop: int) -> bool:
        shown = widths[start:stop]
        return (max(shown, default=0) + 1) * len(shown) <= _WIDTH or len(shown) <= _FEWEST

    first = next((i for i, (_, (_, bad)) in enumerate(items) if bad), 0)
    start = 0 if fits(0, min(len(items), first + 2)) else first - 1
    stop = min(len(items), start + _FEWEST)
    while stop < len(items) and fits(start, stop + 1):
        stop += 1
    return start, stop


def _brackets(value: Any) -> tuple[str, str]:
    if isinstance(value, torch.Tensor):
        return ("[", "]") if value.dim() else ("", "")
    if _is_list(value):
        return ("(", ")") if isinstance(value, tuple) else ("[", "]")
    return "", ""


def _in_brief(value: Any) -> str:
    """Return a value in a few words, from its beginning: tensors without commas, lists with."""
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            return _numbers_apart(value.item(), value.item(), False)[0]
        texts = [_numbers_apart(x, x, False)[0] for x in value.flatten()[:_WIDTH].tolist()]
        return _listed(texts, value.numel(), "[", " ", "]")
    if _is_list(value):
        left, right = _brackets(value)
        texts = [_in_brief(item) for item in value[:_WIDTH]]
        return _listed(texts, len(value), left, ", ", right)
    if isinstance(value, Mapping):
        if list(value) == [RESULT]:  # a report of nothing else
            return _in_brief(value[RESULT])
        entries = ", ".join(f"{key!r}: {_in_brief(item)}" for key, item in value.items())
        return short(f"{{{entries}}}", _WIDTH)
    return _number(value, 5) if type(value) is int else show(value, _WIDTH)


def _listed(texts: Sequence[str], of: int, left: str, comma: str, right: str) -> str:
    """Return the texts of a pair, or as many as fit, and how many there are if some do not."""
    shown = of if of == 2 else 0
    while shown < len(texts) and sum(map(len, texts[: shown + 1])) + 2 * shown <= _WIDTH:
        shown += 1
    shown = max(shown, min(1, len(texts)))
    rest = f"{comma.rstrip() or ''} … ({of} in all)" if shown < of else ""
    return f"{left}{comma.join(texts[:shown])}{rest}{right}"
