"""The kernel's counters of a sandbox's network, compared with the record of a run.

The record of a run is written by code in the student's own process, which could forge it.  The
kernel counts independently how many TCP segments with data were sent in the sandbox's network,
and how many bytes.  gloo sends every message in three pieces (each side announces itself, then
the data; ``gloo/transport/tcp/pair.cc``), each behind a header of 48 bytes, and a small piece is
never cut.  So an unreported message shows, even one byte sent around gloo, and so does a
reported message that was never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from headcount.core.verdict import Diagnosis, Failure
from headcount.trace.trace import Operation, Trace

__all__ = ["Counts", "read_counts"]

#: gloo's pieces of a message, and the bytes of each piece's header.
_PIECES, _HEADER = 3, 48

#: Bytes with which a connection begins, at the least; gloo of torch 2.13 sends 24.
_OPENING = 8

#: Bytes of a data segment's own header: IPv4, TCP, and TCP's time stamps.
_ENVELOPE = 52

#: The largest payload of a segment on the loopback: its MTU less the headers.
_SEGMENT = 65536 - _ENVELOPE

#: The counters that are read, as ``/proc/net`` names them.
_COUNTERS = frozenset(
    {"Tcp:OutSegs", "Tcp:RetransSegs", "IpExt:OutOctets", "TcpExt:TCPOrigDataSent"}
)

#: Larger messages travel in several segments; how many depends on buffers.
_SMALL = 32 << 10


@dataclass(frozen=True)
class Counts:
    """A network's counters.

    Attributes:
        segments: TCP segments with data that were sent for the first time.
        payload: bytes in TCP segments; those that were sent twice count twice.
        resent: segments that were sent again.
    """

    segments: int
    payload: int
    resent: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(
            self.segments - before.segments,
            self.payload - before.payload,
            self.resent - before.resent,
        )

    def contradiction(self, trace: Trace, connections: int) -> Failure | None:
        """Return a failure if more or less was certainly sent than the record says.

        gloo also sends a few bytes over each connection of a group that is made in the call.

        Records with collectives are not judged, since how much a collective sends is up to gloo.
        Bytes are exact unless something was sent twice, which can only make them more; segments are
        exact for small messages, which are never cut.
        """
        return _too_few(connections, self) or _contradiction(trace, self)


def read_counts(pid: int) -> Counts:
    """Return the counters of the network namespace of a process.

    Raises:
        OSError: the process is gone.
    """
    before = _read(pid, "snmp")
    for _ in range(_READS):
        # two files have to be read, and an acknowledgement may be sent between them
        found, after = _read(pid, "netstat"), _read(pid, "snmp")
        if after["Tcp:OutSegs"] == before["Tcp:OutSegs"]:
            break
        before = after
    return Counts(
        segments=found["TcpExt:TCPOrigDataSent"],
        payload=found["IpExt:OutOctets"] - _ENVELOPE * after["Tcp:OutSegs"],
        resent=after["Tcp:RetransSegs"],
    )


def _read(pid: int, name: str) -> dict[str, int]:
    with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
        lines = file.read().splitlines()
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        places = _places(names)
        if places:
            numbers = values.split()
            found.update((key, int(numbers[place])) for key, place in places)
    return found


#: How often the counters are read while they change; a rank may go on sending for ever.
_READS = 100


@lru_cache(maxsize=32)
def _places(names: str) -> tuple[tuple[str, int], ...]:
    """Return the counters of :data:`_COUNTERS` named in a line, with their positions."""
    protocol, *keys = names.split()
    return tuple(
        (protocol + key, place) for place, key in enumerate(keys, 1) if protocol + key in _COUNTERS
    )


def _too_few(connections: int, counts: Counts) -> Failure | None:
    if counts.payload >= _OPENING * connections:
        return None
    return Failure(
        Diagnosis.TAMPERING,
        f"new groups take {connections} connections; the network carried {counts.payload} bytes",
    )


def _contradiction(trace: Trace, counts: Counts) -> Failure | None:
    operations = [op for rank in trace.operations for op in rank]
    if any(not op.is_message for op in operations):
        return None
    sizes = [op.nbytes for op in operations if op.kind == "send"]
    claimed = len(sizes)
    unreported = counts.payload - sum(sizes) - _PIECES * _HEADER * claimed
    # a message that the transport refused or lost may have been carried in part or not at all
    lost = [op.nbytes for op in operations if op.kind == "send" and (op.failed or lost_end(op))]
    missing = -unreported - sum(lost) - _PIECES * _HEADER * len(lost)
    # the kernel may count a large segment as two that share an envelope
    if missing > _ENVELOPE * (counts.payload // _SEGMENT):
        return _forged(sizes, f"the network carried {missing} bytes less")
    small = all(size <= _SMALL for size in sizes)
    more = counts.segments > _PIECES * claimed if small else not counts.resent
    if unreported > 0 and more:
        return _forged(sizes, f"the network carried {unreported} bytes more")
    return None


def lost_end(op: Operation) -> bool:
    """Return whether the receive that a send was matched with has failed."""
    return op.partner is not None and op.partner.failed


def _forged(sizes: Sequence[int], what: str) -> Failure:
    return Failure(
        Diagnosis.TAMPERING,
        f"the record says {len(sizes)} messages, {sum(sizes)} bytes; {what}",
    )
