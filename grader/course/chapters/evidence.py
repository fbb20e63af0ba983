"""What the evidence of a failure proves in any exercise on messages; used in the judge only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from grader.exercise.cases import op_name
from grader.exercise.declaration import Evidence, JudgedCase, Mistake
from grader.instruments import BETWEEN
from headcount.core.values import Opaque
from headcount.core.verdict import Diagnosis

__all__ = [
    "AVERAGE_ALONE",
    "BUFFER_RACES",
    "NO_GROUPS",
    "XOR",
    "all_send",
    "always",
    "common_end",
    "forward_has_ended",
    "is_butterfly",
    "nearly",
    "same",
    "sends_first",
    "on_powers_of_two_only",
]

#: The kinds of buffer race, distinguished by the failure's message.
BUFFER_RACES = (
    Mistake(
        "A message is received into a tensor that is still being sent, and may reach the other"
        " side in its place. Receive into a new tensor, as torch.empty_like makes, or wait first,"
        " if nothing needs the old numbers.",
        when=lambda e: e.races("recv", "send"),
    ),
    Mistake(
        "Two receives fill the same tensor at the same time, and one message overwrites the other:"
        " use one buffer per irecv, or wait first.",
        when=lambda e: e.races("recv", "recv"),
    ),
    Mistake(
        "A tensor was written to while isend was still sending it: do not write to it before"
        " wait(), or work in another tensor.",
        when=lambda e: e.races("send"),
    ),
)


def _divisions(one: JudgedCase) -> set[float]:
    """Return by what ranks divide the sum of all ranks; NaN where one holds no part of the sum."""
    columns, found = one.case.columns, set()
    for rank, held in enumerate(one.actual):
        parts = [x[rank] for x in columns["chunks"]] if "chunks" in columns else columns["x"]
        if "x" in columns and same(held, parts[rank]):
            continue  # it may be none of those that hold the result
        total, value = sum(part.double() for part in parts).flatten(), held.double().flatten()
        by = float(total @ total / (total @ value))
        alike = bool((value * by - total).abs().max() <= 1e-4 * total.abs().max())
        found.add(round(by, 3) if alike else math.nan)
    return found


def _average_alone(e: Evidence) -> bool:
    """Return whether averages alone are wrong: sums that are divided by one wrong number."""
    wrong = {(op_name(one.case.op), one.diagnosis) for one in e.failed}
    sizes = {one.case.n for one in e.failed}
    sums = {one.case.n for one in e.passed if op_name(one.case.op) == "SUM"}
    lost = any(part.lost for part in e.source)
    if wrong != {("AVG", Diagnosis.WRONG_VALUE)} or not sizes <= sums or lost:
        return False
    divisions = [_divisions(one) for one in e.failed if one.actual]
    return all(len(found) == 1 and math.isfinite(min(found)) for found in divisions)


#: A wrong division in a reduction where values do not show which one it is.
AVERAGE_ALONE = Mistake(
    "SUM is right and AVG is wrong, so look at the division: the sum of all ranks is divided by"
    " their number n, once, at the end.",
    when=_average_alone,
)


def _in_place_of_groups(e: Evidence) -> list[Any]:
    """Return what ranks hold, entry by entry."""
    results = [a for a in e.actual if isinstance(a, (list, tuple, Mapping))]
    entries = [a.values() if isinstance(a, Mapping) else a for a in results]
    return [entry for held in entries for entry in held]


def _is_list_of_ranks(value: Any) -> bool:
    lists = isinstance(value, (list, tuple, torch.Tensor))
    return lists or (isinstance(value, Opaque) and value.kind == "a range")


#: What ranks hold in the place of process groups.
NO_GROUPS = (
    Mistake(
        "Lists of ranks are not groups yet. dist.new_group(ranks) makes a group of them.",
        when=lambda e: any(map(_is_list_of_ranks, _in_place_of_groups(e))),
    ),
    Mistake(
        "−100 is what new_group returns on a rank that is not in the group"
        " (dist.GroupMember.NON_GROUP_MEMBER). Keep a group only where rank is among its"
        " members: here a later one has taken its place.",
        when=lambda e: any(
            type(one) is int and one == dist.GroupMember.NON_GROUP_MEMBER
            for one in _in_place_of_groups(e)
        ),
    ),
)


def always(symptom: Callable[[Evidence], bool]) -> Callable[[Evidence], bool]:
    """Make a test of whether a symptom shows each time that values are wrong on several ranks.

    On two ranks many mistakes look alike; on three they differ.
    """

    def seen(e: Evidence) -> bool:
        wrong = [
            one
            for one in e.failed
            if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual and one.case.n > 1
        ]
        return bool(wrong) and all(symptom(Evidence((one,), e.source)) for one in wrong)

    return seen


def on_powers_of_two_only(e: Evidence) -> bool:
    """Return whether 2 and 4 ranks pass, and at least two other numbers fail with all inputs."""
    failed = {one.case.n for one in e.failed}
    right = {one.case.n for one in e.passed}
    return (
        {2, 4} <= right
        and not failed & right
        and len(failed) > 1
        and all(n & (n - 1) for n in failed)
    )


def sends_first(e: Evidence, but: int) -> bool:
    """Return whether a rank other than ``but`` sends before it has received anything."""
    return any(
        operations and operations[0].kind == "send"
        for rank, operations in enumerate(e.trace.operations)
        if rank != but
    )


def forward_has_ended(e: Evidence) -> bool:
    """Return whether the rank that has raised, or else every rank, has passed forward's end."""
    failure = e.failure
    records = e.trace.marks
    if failure is not None and failure.raised.kind and failure.rank is not None:
        records = (records[failure.rank],)
    return all(any(mark.text == BETWEEN for mark in marks) for marks in records)


def all_send(e: Evidence) -> bool:
    """Return whether all ranks are stuck in a send, before any has asked for a message."""
    waits = e.failure.waits if e.failure else ()
    return len(waits) == e.case.n and all(
        wait.call == "send"
        and not any(op.kind == "recv" and not op.matched for op in e.trace.operations[wait.rank])
        for wait in waits
    )


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors hold the same numbers; a NaN is the same as every other."""
    nans = (one != one) & (other != other) if one.shape == other.shape else False
    return one.shape == other.shape and bool(((one == other) | nans).all())


def nearly(want: torch.Tensor, got: torch.Tensor, size: torch.Tensor | float) -> bool:
    """Return whether numbers of about this size have lost digits on their way, and no more."""
    return bool(((want.double() - got.double()).abs() <= 1e-4 * size).all())


def common_end(e: Evidence) -> int | None:
    """Return the rank that is an end of every message in a world of more than two, or ``None``."""
    largest = max(e.failed, key=lambda one: one.case.n)
    ends = [{op.rank, op.peer} for op in largest.trace.sends()]
    common = set.intersection(*ends) if ends and largest.case.n > 2 else set()
    return min(common, default=None)


def is_butterfly(e: Evidence) -> bool:
    """Return whether partners are rank and rank ^ step, where both of them exist.

    On three ranks these are also the pairs of a star.
    """
    largest = max(e.failed, key=lambda one: one.case.n)
    n, ranks = largest.case.n, largest.case.ranks
    talk = {(op.rank, op.peer) for op in largest.trace.sends()}
    doubled = [1 << k for k in range(n.bit_length())]
    # with a power of two, all steps are all pairs, however they are found
    every_step = range(1, n) if n & (n - 1) else doubled
    return n > 3 and any(
        talk == {(r, r ^ step) for r in ranks for step in steps if r ^ step in ranks}
        for steps in (every_step, doubled)
    )


XOR = Mistake(
    "rank ^ step finds a partner for every rank only if the number of ranks is a power of two: with"
    " 3 ranks, 1 ^ 2 is 3, which does not exist, and ranks 1 and 2 never meet. Send to"
    " (rank + step) % n and receive from (rank − step) % n, which exist for every n.",
    when=lambda e: all(one.case.n & (one.case.n - 1) for one in e.failed) and is_butterfly(e),
)
