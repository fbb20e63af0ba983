"""Whether two ranks mean the same: the ends of a message, the calls of a collective."""

from __future__ import annotations

from grader.traffic.events import ANY
from grader.traffic.trace import Operation
from grader.verdict import Diagnosis, Failure

__all__ = ["disagreement", "misfit"]


def misfit(send: Operation, receive: Operation) -> Failure | None:
    """Why a message does not fit where it is received."""
    route = (
        f"rank {send.rank} sends {{}} at {send.site},"
        f" rank {receive.rank} receives {{}} at {receive.site}"
    )
    if send.dtype != receive.dtype:
        diagnosis, text = Diagnosis.DTYPE_MISMATCH, route.format(send.dtype, receive.dtype)
    elif send.count != receive.count:
        diagnosis, text = (
            Diagnosis.SIZE_MISMATCH,
            route.format(f"{send.count} elements", f"into {receive.count}"),
        )
    else:
        return None
    return Failure(diagnosis, text, receive.rank, receive.site)


def _call_text(op: Operation) -> str:
    details = [f"root {op.peer}"] if op.peer != ANY else []
    details += [op.detail] if op.detail else []
    inside = f" ({', '.join(details)})" if details else ""
    return f"rank {op.rank} calls {op.kind}{inside} at {op.site}"


def disagreement(first: Operation, second: Operation) -> Failure | None:
    """Why two ranks cannot be in the same collective call; ``first`` has the lower rank."""
    if (first.kind, first.peer, first.detail) != (second.kind, second.peer, second.detail):
        diagnosis = Diagnosis.ORDER_MISMATCH
        text = f"{_call_text(first)}, while {_call_text(second)}"
    elif (first.dtype, first.count) != (second.dtype, second.count):
        sort = first.dtype != second.dtype
        diagnosis = Diagnosis.DTYPE_MISMATCH if sort else Diagnosis.SIZE_MISMATCH
        text = f"{first.kind} of {_amount(first)} on rank {first.rank} ({first.site}), of"
        text += f" {_amount(second)} on rank {second.rank} ({second.site})"
    else:
        return None
    return Failure(diagnosis, text, second.rank, second.site)


def _amount(op: Operation) -> str:
    return f"{op.count} {op.dtype} elements"
