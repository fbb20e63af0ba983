"""What a run without results has done: what its arguments became, and what was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.exercise.compare import side_by_side, wrong_elements
from grader.exercise.verdict import listed
from grader.report.summary import ROWS, RowParts
from headcount.core.values import tensors_in
from headcount.launch.world import ArgumentChange, RankResult
from headcount.report import visible

__all__ = ["ChangedArgument", "changed_arguments", "nothing_returned"]

#: Arguments that are shown; further ones are only named.
_ARGUMENTS = 6

#: Ranks that are named one by one.
_NAMED = 8

#: Elements of a tensor that is shown as it is; of a larger one only so many around the first
#: change are looked at, half of them before it.
_ELEMENTS = 64


@dataclass(frozen=True)
class ChangedArgument:
    """An argument that some rank has changed.

    Attributes:
        head: which one, and on which ranks: "x changed on ranks 1 and 2".
        rows: what it is on every rank, and was.
        more: what is left out; empty if nothing is.
    """

    head: str
    rows: list[RowParts]
    more: str = ""


def nothing_returned(
    results: Sequence[RankResult], arguments: int, changed: Sequence[ChangedArgument], sent: str
) -> str:
    """Describe in a line a run whose function returns nothing, and what else it did not do.

    Args:
        results: by rank.
        arguments: how many the function was given.
        changed: those that have changed.
        sent: what was sent, in words.
    """
    n = len(results)
    parts = [f"{n} rank{'s' * (n != 1)}", "nothing returned"]
    unseen = dict.fromkeys(name for result in results for name in result.unseen)
    if arguments and not changed and not unseen:
        given = " (each rank was given the same)" if n > 1 and sent else ""
        parts.append(f"no argument changed{given}")
    if not sent:
        parts.append("no messages sent")
    text = ", ".join(parts)
    return f"{text}; what became of {listed(unseen)} cannot be shown" if unseen else text


def changed_arguments(results: Sequence[RankResult]) -> list[ChangedArgument]:
    """Return what became of the arguments that some rank has changed, in their order.

    Ranks are given the same arguments, so what one has not changed is what the others were given.
    """
    changes = {
        (change.name, rank): change
        for rank, result in enumerate(results)
        for change in result.changes
        if not side_by_side(rank, *_cut_around_change(change.before, change.after)).right
    }
    names = list(dict.fromkeys(name for name, _ in changes))
    found = [
        _changed(
            name, len(results), {rank: one for (of, rank), one in changes.items() if of == name}
        )
        for name in names[:_ARGUMENTS]
    ]
    if names[_ARGUMENTS:]:
        found.append(ChangedArgument(f"{listed(names[_ARGUMENTS:])} changed, too", []))
    return found


def _changed(name: str, n: int, changes: Mapping[int, ArgumentChange]) -> ChangedArgument:
    ranks = sorted(changes)
    if n == 1:
        where = ""
    elif len(ranks) == n:
        where = " on every rank"
    elif len(ranks) > _NAMED:
        where = f" on {len(ranks)} of {n} ranks"
    else:
        where = f" on rank{'s' * (len(ranks) > 1)} {listed(ranks)}"
    before = next(iter(changes.values())).before
    chosen = [*ranks, *(rank for rank in range(n) if rank not in changes)][:ROWS]
    rows = _share_value_before(
        [_change_row(rank, n, before, changes.get(rank)) for rank in sorted(chosen)]
    )
    more = f"{n - ROWS} more ranks" if n > ROWS else ""
    return ChangedArgument(f"{name} changed{where}", rows, more)


def _share_value_before(rows: list[RowParts]) -> list[RowParts]:
    """Show the value before in a row of its own if it is the same on all ranks."""
    befores = list(dict.fromkeys(row.expected for row in rows if not row.right))
    # beside wider numbers, the same ones stand farther apart
    if len({text.replace(" ", "") for text in befores}) == 1:
        before = befores[0] if len(befores) == 1 else re.sub(r"(?<=\[) +| +(?= )", "", befores[0])
        first = RowParts("before", before, (), "", "", True)
        rows = [first, *(replace(row, expected="") for row in rows)]
    width = max(len(row.rank) for row in rows)
    return [replace(row, rank=row.rank.ljust(width)) for row in rows]


def _change_row(rank: int, n: int, before: Any, change: ArgumentChange | None) -> RowParts:
    label = f"rank {rank}" if n > 1 else "after"
    if change is None:
        return RowParts(label, visible(_shortened(before)), (), "", "unchanged", True)
    after = change.after
    texts = visible(_shortened(before)), visible(_shortened(after))
    if _is_compound(before) or _is_compound(after):
        grown = isinstance(before, Mapping) and before.keys() != after.keys()
        if grown or not any("…" in text for text in texts):
            return RowParts(label, texts[1], (), texts[0], "", False)
    row = side_by_side(rank, *_cut_around_change(before, after))
    wrong = row.wrong if visible(row.actual) == row.actual else ()
    extent = _extent_of_change(before, after)
    return RowParts(label, visible(row.actual), wrong, visible(row.expected), extent, False)


def _is_compound(value: Any) -> bool:
    """Return whether a value has parts of its own, and is no tensor or list of numbers."""
    if isinstance(value, torch.Tensor):
        return False
    return isinstance(value, Mapping) or bool(tensors_in(value))


def _shortened(value: Any) -> str:
    """Return a value in short, from its beginning."""
    return side_by_side(0, value, value).actual


def _extent_of_change(before: Any, after: Any) -> str:
    """Return what has changed where that is more than can be seen; empty elsewhere."""
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        if before.shape != after.shape or before.numel() <= _ELEMENTS // 4:
            return ""
        wrong = wrong_elements(before, after, 0, None)
        count, of = int(wrong.sum()), wrong.numel()
        first = torch.unravel_index(wrong.flatten().int().argmax(), wrong.shape)
        place = f"[{', '.join(str(int(index)) for index in first)}]"
        if count == of:
            return f"all {of:,} elements"
        return f"at {place}" if count == 1 else f"from {place} on"
    pairs = list(zip(tensors_in(before), tensors_in(after), strict=False))
    if len(pairs) < 2:
        return ""
    count = sum(not side_by_side(0, *_cut_around_change(*pair)).right for pair in pairs)
    return f"{count} of {len(pairs)} tensors"


def _cut_around_change(before: Any, after: Any) -> tuple[Any, Any]:
    """Return two values with large tensors cut to the part around their first difference."""
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        return _cut_tensors(before, after)
    if isinstance(before, Mapping) and isinstance(after, Mapping) and before.keys() == after.keys():
        cut = {key: _cut_around_change(value, after[key]) for key, value in before.items()}
        return {key: one for key, (one, _) in cut.items()}, {
            key: other for key, (_, other) in cut.items()
        }
    if (
        isinstance(before, (list, tuple))
        and type(before) is type(after)
        and len(before) == len(after)
    ):
        pairs = [_cut_around_change(*pair) for pair in zip(before, after, strict=True)]
        return type(before)(one for one, _ in pairs), type(before)(other for _, other in pairs)
    return before, after


def _cut_tensors(before: torch.Tensor, after: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    same_kind = (before.shape, before.dtype) == (after.shape, after.dtype)
    if not same_kind or before.numel() <= _ELEMENTS:
        return before, after
    first = int(wrong_elements(before, after, 0, None).flatten().int().argmax())
    part = slice(max(0, first - _ELEMENTS // 2), first + _ELEMENTS // 2)
    return before.flatten()[part], after.flatten()[part]
