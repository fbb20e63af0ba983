"""Whether two ranks mean the same: the ends of a message, the calls of a collective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grader.core.events import ANY, Signature
from grader.core.verdict import Diagnosis, Failure, Site
from grader.trace.trace import Operation

__all__ = ["Call", "disagreement", "misfit"]


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


class Call(Protocol):
    """A rank's call of a collective, as far as others have to agree with it."""

    rank: int
    kind: str
    peer: int
    detail: str
    signatures: Sequence[Signature]
    site: Site


def _call_text(op: Call) -> str:
    details = [f"root {op.peer}"] if op.peer != ANY else []
    details += [op.detail] if op.detail else []
    inside = f" ({', '.join(details)})" if details else ""
    return f"rank {op.rank} calls {op.kind}{inside} at {op.site}"


def disagreement(one: Call, other: Call, members: Sequence[int]) -> Failure | None:
    """Why two ranks of a group cannot be in the same collective call; ``one`` has the lower rank.

    ``members`` are the global ranks of the group, by rank in it.
    """
    if (one.kind, one.peer, one.detail) != (other.kind, other.peer, other.detail):
        diagnosis = Diagnosis.ORDER_MISMATCH
        text = f"{_call_text(one)}, while {_call_text(other)}"
        if one.kind == other.kind == "new_group":
            text += "; every rank has to make the same groups in the same order"
        return Failure(diagnosis, text, other.rank, other.site)
    if len(one.signatures) != len(other.signatures):
        text = f"{one.kind} of {len(one.signatures)} tensors on rank {one.rank} ({one.site}), of"
        text += f" {len(other.signatures)} on rank {other.rank} ({other.site})"
        return Failure(Diagnosis.SIZE_MISMATCH, text, other.rank, other.site)
    for mine, theirs in zip(one.signatures, other.signatures, strict=True):
        if mine == theirs and mine.even is not None:
            continue  # by far the most frequent, and then places do not matter
        for ends in (((one, mine), (other, theirs)), ((other, theirs), (one, mine))):
            failure = _misgiven(*ends, members)
            if failure is not None:
                if mine.even is not None and theirs.even is not None:
                    failure = f"{_amount(one, mine)}, of {_amount(other, theirs, again=True)}"
                dtypes = mine.dtype != theirs.dtype
                word = Diagnosis.DTYPE_MISMATCH if dtypes else Diagnosis.SIZE_MISMATCH
                return Failure(word, failure, other.rank, other.site)
    return None


def _misgiven(
    end: tuple[Call, Signature], other_end: tuple[Call, Signature], members: Sequence[int]
) -> str | None:
    """What is wrong with what one rank gives to another, if anything is."""
    (giver, given), (taker, taken) = end, other_end
    gives = given.gives_to(members.index(taker.rank))
    takes = taken.takes_from(members.index(giver.rank))
    # where one end alone counts, as between ranks that are not the root, there is nothing wrong
    if gives is None or takes is None or (gives, given.dtype) == (takes, taken.dtype):
        return None
    return (
        f"in {giver.kind}, rank {giver.rank} gives {gives} {given.dtype} elements to rank"
        f" {taker.rank} ({giver.site}), and rank {taker.rank} takes {takes} {taken.dtype}"
        f" elements from rank {giver.rank} ({taker.site})"
    )


def _amount(call: Call, signature: Signature, again: bool = False) -> str:
    """What one rank's call is of, where that is a single number."""
    what = "" if again else f"{call.kind} of "
    each = " per rank" if call.kind in _BY_RANK else ""
    return (
        f"{what}{signature.even} {signature.dtype} elements{each} on rank {call.rank} ({call.site})"
    )


#: Collectives that give each rank, or take from it, a part of its own.
_BY_RANK = frozenset({"all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"})
