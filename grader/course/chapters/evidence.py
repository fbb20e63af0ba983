"""What the evidence of a failure proves in any exercise on messages; used in the judge only."""

from __future__ import annotations

import re
from collections.abc import Callable

from grader.core.verdict import Diagnosis
from grader.course.cases import op_name
from grader.course.exercise import Evidence, Mistake

__all__ = [
    "AVERAGE_ALONE",
    "BUFFER_RACES",
    "NOT_IN_ONE_PIECE",
    "all_send",
    "always",
    "common_end",
    "ever_to_itself",
    "sends_first",
    "no_rank",
    "on_powers_of_two_only",
    "rebinds",
    "to_itself",
    "uses_xor",
]

#: The kinds of buffer race, distinguished by the failure's message.
BUFFER_RACES = (
    Mistake(
        "A message is received into a tensor that is still being sent, and may reach the other"
        " side in its place. Receive into another one, such as torch.empty_like(x), or wait first.",
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

#: Tensors whose numbers do not lie in one piece, where they are sent and where they are viewed.
NOT_IN_ONE_PIECE = (
    Mistake(
        "A message needs a tensor whose numbers lie in one piece in memory, and those of a slice, a"
        " transpose and many gradients do not: call .contiguous() first.",
        when=lambda e: any(
            map(e.says, ("contiguous tensor", "must be contiguous", ".contiguous()"))
        ),
    ),
    Mistake(
        "view needs numbers that lie in one piece, and those of a slice, a transpose and many"
        " gradients do not: reshape and flatten make a copy where they have to.",
        when=lambda e: e.says("view size is not compatible"),
    ),
)


def _average_alone(e: Evidence) -> bool:
    """Return whether averages are wrong, sums are right, and no value is lost in the source."""
    wrong = {(op_name(one.case.op), one.diagnosis) for one in e.failed}
    sizes = {one.case.n for one in e.failed}
    sums = {one.case.n for one in e.passed if op_name(one.case.op) == "SUM"}
    lost = any(part.lost for part in e.source)
    return wrong == {("AVG", Diagnosis.WRONG_VALUE)} and sizes <= sums and not lost


#: A wrong division in a reduction where values do not show which one it is.
AVERAGE_ALONE = Mistake(
    "SUM is right and AVG is wrong, so look at the division: the sum of all ranks is divided by"
    " their number n, once, at the end.",
    when=_average_alone,
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
    """Return whether 2 and 4 ranks pass, and at least two other numbers of ranks fail."""
    failed = {one.case.n for one in e.failed}
    right = {one.case.n for one in e.passed} - failed
    return {2, 4} <= right and len(failed) > 1 and all(n & (n - 1) for n in failed)


def uses_xor(e: Evidence) -> bool:
    """Return whether the source uses an exclusive or."""
    return e.written(r"\^|\bxor\b|bitwise_xor")


def no_rank(e: Evidence) -> bool:
    """Return whether a message was for a rank that does not exist."""
    return e.raised("NoSuchRank")


def used_none(e: Evidence) -> bool:
    """Return whether something was done with ``None``, or it was given for a tensor."""
    return e.says("NoneType") or e.says("takes a tensor, not None")


def to_itself(e: Evidence) -> bool:
    """Return whether a rank tried to send to itself, or to receive from itself."""
    return e.raised("PeerIsSelf")


def ever_to_itself(e: Evidence) -> bool:
    """Return whether a rank tried that in any failed case, whichever of them leads the verdict."""
    raised = (one.failure.raised for one in e.failed if one.failure is not None)
    return any(kind == "PeerIsSelf" for kind, _ in raised)


def rebinds(e: Evidence, name: str) -> bool:
    """Return whether the source binds a name to another tensor, as in ``x = x + y``."""
    return e.written(rf"(?m)^\s*{re.escape(name)}\s*=[^=]")


def sends_first(e: Evidence, but: int) -> bool:
    """Return whether a rank other than ``but`` sends before it has received anything."""
    return any(
        operations and operations[0].kind == "send"
        for rank, operations in enumerate(e.trace.operations)
        if rank != but
    )


def all_send(e: Evidence) -> bool:
    """Return whether all ranks are stuck in a send, before any has asked for a message."""
    waits = e.failure.waits if e.failure else ()
    return len(waits) == e.case.n and all(
        wait.call == "send"
        and not any(op.kind == "recv" and not op.matched for op in e.trace.operations[wait.rank])
        for wait in waits
    )


def common_end(e: Evidence) -> int | None:
    """Return the rank that is an end of every message in a world of more than two, or ``None``."""
    largest = max(e.failed, key=lambda one: one.case.n)
    ends = [{op.rank, op.peer} for op in largest.trace.sends()]
    common = set.intersection(*ends) if ends and largest.case.n > 2 else set()
    return min(common, default=None)
