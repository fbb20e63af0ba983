"""Evidence of mistakes with messages of different sizes, read from the traffic.

The cases have ``rows``, a tensor for each rank, and ``counts``, how many of
them go to each rank.
"""

from __future__ import annotations

import torch

from grader.core.values import dtype_name
from grader.core.verdict import Diagnosis
from grader.course.cases import Case
from grader.course.exercise import Evidence
from grader.trace.trace import Operation

__all__ = [
    "empty_message_alone",
    "even_shares",
    "forgets_the_row_shape",
    "receives_own_counts",
    "sends_everything",
]


def _row_messages(e: Evidence, kind: str) -> list[Operation]:
    """The messages of rows and not of counts, where the dtypes tell."""
    dtype = dtype_name(e.case.rows[0].dtype)
    ends = [op for ops in e.trace.operations for op in ops if op.kind == kind]
    return [op for op in ends if op.dtype == dtype and dtype != "int64"]


def _row_size(c: Case) -> int:
    return int(torch.Size(c.rows[0].shape[1:]).numel())


def receives_own_counts(e: Evidence) -> bool:
    """Whether what is expected from a rank is as much as is sent to it."""
    receives, size = _row_messages(e, "recv"), _row_size(e.case)
    if e.diagnosis not in (Diagnosis.SIZE_MISMATCH, Diagnosis.DEADLOCK) or not receives:
        return False
    return all(op.count == e.case.counts[op.rank][op.peer] * size for op in receives)


def even_shares(e: Evidence) -> bool:
    """Whether everybody sends equal shares of its rows, whatever the counts say."""
    sends, c = _row_messages(e, "send"), e.case
    shares = {r: len(c.rows[r]) / c.n for r in c.ranks}
    uneven = any(op.count != c.counts[op.rank][op.peer] * _row_size(c) for op in sends)
    return uneven and all(
        abs(op.count - shares[op.rank] * _row_size(c)) < _row_size(c) for op in sends
    )


def forgets_the_row_shape(e: Evidence) -> bool:
    """Whether a place for k rows has k elements."""
    receives, c = _row_messages(e, "recv"), e.case
    return (
        e.diagnosis is Diagnosis.SIZE_MISMATCH
        and _row_size(c) > 1
        and bool(receives)
        and all(op.count == c.counts[op.peer][op.rank] for op in receives)
    )


def empty_message_alone(e: Evidence) -> bool:
    """Whether a message without elements has one end only, and a rank is stuck in that end."""
    stuck = e.diagnosis is Diagnosis.DEADLOCK
    lost = (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)
    return e.diagnosis in lost and any(
        op.is_message and op.count == 0 and not op.matched and (op.blocked or not stuck)
        for operations in e.trace.operations
        for op in operations
    )


def sends_everything(e: Evidence) -> bool:
    """Whether every rank sends all of its rows to every other one."""
    c = e.case
    sends = [op for op in _row_messages(e, "send") if op.count > c.n]
    everything = bool(sends) and all(op.count >= c.rows[op.rank].numel() for op in sends)
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and everything
