"""Who can know what: which ranks' beginnings come before which ranks' ends.

Lamport's happened-before (*Time, Clocks, and the Ordering of Events in a
Distributed System*, 1978): what a rank does after it has received a message
comes after what the sender did before it sent.
"""

from __future__ import annotations

from grader.trace.trace import Trace

__all__ = ["heard_from"]


def heard_from(trace: Trace) -> list[frozenset[int]]:
    """For each rank, those whose beginning is known to be past when it ends.

    A chain of messages leads from each of them to the rank, so it cannot end
    before they have begun, however fast or slow anybody is.  The rank itself
    is among them.

    The record may be a part of a longer one, such as the second of two calls
    in a row.  A message that was sent before that part tells nothing of it.
    """
    moments: list[tuple[int, int, int, int, int]] = []
    for operations in trace.operations:
        for place, op in enumerate(operations):
            if op.kind == "send":
                moments.append((op.posted, 0, op.rank, op.number, place))
            elif op.kind == "recv" and op.done is not None and op.partner is not None:
                moments.append((op.done, 1, op.rank, op.number, place))
    known = [frozenset({rank}) for rank in range(trace.world_size)]
    carried: dict[tuple[int, int], frozenset[int]] = {}
    for _, received, rank, number, place in sorted(moments):
        if received:
            partner = trace.operations[rank][place].partner
            assert partner is not None
            known[rank] |= carried.get((partner.rank, partner.number), frozenset())
        else:
            carried[rank, number] = known[rank]
    return known
