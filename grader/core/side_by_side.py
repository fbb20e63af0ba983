"""An expected and an actual result side by side: what differs is marked, and said in words.

Long values are cut around the first difference, so that the two never look alike where
they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.core.compare import RESULT, compare, wrong_elements
from grader.core.values import Opaque, dtype_name, short, show, with_article
from grader.core.verdict import RankRow

__all__ = ["side_by_side"]

#: Characters of one value in a row, and its elements where they are longer.
_WIDTH, _FEWEST = 34, 3

#: Numbers of elements in words.
_NUMBERS = ("no", "one", "both", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

#: The text of an element, and whether it is wrong.
_Item = tuple[str, bool]


@dataclass(frozen=True)
class _Rule:
    """What counts as equal, as in :func:`grader.core.compare.compare`."""

    terms: int
    relative: float

    def sees(self, expected: Any, actual: Any, scale: Any) -> bool:
        return compare(expected, actual, self.terms, scale, relative=self.relative) is not None


def side_by_side(
    rank: int, expected: Any, actual: Any, terms: int = 0, scale: Any = None, relative: float = 0.0
) -> RankRow:
    """Return a rank's row of a report.

    Args:
        rank: the rank.
        expected: what it should hold.
        actual: what it holds.
        terms: the terms of a reduction, and ``scale`` and ``relative``, as in
            :func:`grader.core.compare.compare`.
        scale: see ``terms``.
        relative: see ``terms``.
    """
    rule = _Rule(terms, relative)
    if not rule.sees(expected, actual, scale):
        text = _brief(actual)
        return RankRow(rank, text, text, True)
    where, expected, actual, scale = _narrowed(rule, expected, actual, scale)
    kind = _other_kind(expected, actual, relative)
    lead = f"{', '.join(where)}: " if where else ""
    if kind:
        text = _brief(actual)
        wrong = ((len(lead), len(lead) + len(text)),)
        return RankRow(rank, lead + _brief(expected), lead + text, False, wrong, kind)
    items, note = _items(rule, expected, actual, scale)
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


def _narrowed(
    rule: _Rule, expected: Any, actual: Any, scale: Any
) -> tuple[list[str], Any, Any, Any]:
    """Return the innermost list or tensor that has the first difference, and the way to it."""
    where: list[str] = []
    key: Any
    while True:
        if isinstance(expected, Mapping):
            if not isinstance(actual, Mapping) or set(actual) != set(expected):
                return where, expected, actual, scale
            parts = dict(scale) if isinstance(scale, Mapping) else {}
            key = next(k for k in expected if rule.sees(expected[k], actual[k], parts.get(k)))
            where += [str(key)] * (key != RESULT)
        elif _is_list(expected) and _is_list(actual) and len(expected) == len(actual):
            parts = dict(enumerate(scale if _is_list(scale) else ()))
            if not any(_is_list(e) or isinstance(e, (torch.Tensor, Mapping)) for e in expected):
                return where, expected, actual, scale
            key = next(i for i, e in enumerate(expected) if rule.sees(e, actual[i], parts.get(i)))
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
    rule: _Rule, expected: Any, actual: Any, scale: Any
) -> tuple[list[tuple[_Item, _Item]], str]:
    """Return the elements of both values, side by side, and which of them are wrong, in words."""
    if isinstance(expected, torch.Tensor):
        mask = wrong_elements(expected, actual, rule.terms, scale)
        wrong = mask.flatten().tolist()
        items = [
            ((one, False), (other, bad))
            for bad, (one, other) in zip(
                wrong,
                map(_apart, expected.flatten().tolist(), actual.flatten().tolist(), wrong),
                strict=True,
            )
        ]
        return items, _which(wrong, "element", _index(expected.shape)) if expected.dim() else ""
    if _is_list(expected):
        parts = scale if _is_list(scale) else [None] * len(expected)
        wrong = [rule.sees(*both) for both in zip(expected, actual, parts, strict=True)]
        items = [
            ((show(one, _WIDTH), False), (show(other, _WIDTH), bad))
            for one, other, bad in zip(expected, actual, wrong, strict=True)
        ]
        return items, _which(wrong, "entry", str)
    numbers = isinstance(expected, (int, float)) and isinstance(actual, (int, float))
    one, other = (_apart if numbers else _both_cut)(expected, actual)
    return [((one, False), (other, True))], ""


def _apart(one: Any, other: Any, wrong: bool = True) -> tuple[str, str]:
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
    texts = repr(one), repr(other) if not isinstance(other, Opaque) else show(other)
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


def _which(wrong: Sequence[bool], noun: str, name: Callable[[int], str]) -> str:
    """Return which elements are wrong: ``all three``, ``element 1``, ``12 of 15 elements``."""
    places = [place for place, bad in enumerate(wrong) if bad]
    count, of = len(places), len(wrong)
    if count == of > 1:
        number = _NUMBERS[of] if of < len(_NUMBERS) else f"{of}"
        return number if of == 2 else f"all {number}"
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


def _brief(value: Any) -> str:
    """Return a value in a few words, from its beginning: tensors without commas, lists with."""
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            return _apart(value.item(), value.item(), False)[0]
        texts = [_apart(x, x, False)[0] for x in value.flatten()[:_WIDTH].tolist()]
        return _listed(texts, value.numel(), "[", " ", "]")
    if _is_list(value):
        left, right = _brackets(value)
        texts = [_brief(item) for item in value[:_WIDTH]]
        return _listed(texts, len(value), left, ", ", right)
    if isinstance(value, Mapping):
        return short(", ".join(f"{key}: {_brief(item)}" for key, item in value.items()), _WIDTH)
    return _number(value, 5) if type(value) is int else show(value, _WIDTH)


def _listed(texts: Sequence[str], of: int, left: str, comma: str, right: str) -> str:
    """Return as many texts of a sequence as fit, and how long it is if some do not."""
    shown = 0
    while shown < len(texts) and sum(map(len, texts[: shown + 1])) + 2 * shown <= _WIDTH:
        shown += 1
    shown = max(shown, min(1, len(texts)))
    rest = f"{comma.rstrip() or ''} … ({of} in all)" if shown < of else ""
    return f"{left}{short(comma.join(texts[:shown]), _WIDTH)}{rest}{right}"
