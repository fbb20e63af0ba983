"""The wire between the judge and a rank: the messages, and the frames that hold them.

A frame is four bytes of length, little-endian, and a msgpack body.  Bodies decode into the structs
of this module and of :mod:`headcount.core.events`, or not at all.

What comes from a rank is data, whatever it is: the types of the fields bound every list and text,
and :class:`FrameReader` bounds every frame, before memory is taken for them.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from headcount.core.events import (
    Amount,
    Completed,
    Event,
    Left,
    Line,
    Matched,
    Name,
    Posted,
    Text,
    Time,
)
from headcount.core.program import Module
from headcount.core.verdict import Diagnosis, Volume

__all__ = [
    "DUMP_END",
    "AT_RETURN",
    "SIMULATOR",
    "Answered",
    "BrokenFrame",
    "DumpStacks",
    "FrameReader",
    "FrameWriter",
    "RunCall",
    "FromRank",
    "Inspect",
    "Joined",
    "LONGEST_KEY",
    "LONGEST_VALUE",
    "REPORTS",
    "Load",
    "StoreLookup",
    "Perform",
    "Performed",
    "Put",
    "Raised",
    "Ready",
    "Refused",
    "Resolved",
    "Returned",
    "Setup",
    "Simulate",
    "Simulated",
    "StepCount",
    "Tally",
    "ToRank",
    "TooManyMessages",
    "StoreSeen",
    "StoreEntry",
    "framed",
    "read_frames",
]


class Setup(msgspec.Struct, tag="setup", frozen=True):
    """The first frame to a rank: its number, and its environment.

    Attributes:
        rank: the number of the rank.
        size: the number of ranks.
        smaller: numbers of ranks, from the first on, that may form worlds of their own.
        path: its ``sys.path``; empty to leave it as it is.
        folder: its working directory.
        memory: bytes that the rank may allocate beyond what it starts with.
        sealed: whether it gives up all system calls that reach beyond it, once it has joined.
        subgroups: whether it may make groups, for which a sealed rank keeps the right to connect.
        collectives: whether there may be collectives, for which each size has its own connections.
        transport: the module of what carries the messages, see :mod:`headcount.rank.transports`.
        environment: variables to set in the rank's environment.
        seed: the seed of the rank's random numbers.
        weighed: whether it pauses before it runs a line of the program, so that the judge knows
            how much memory it has without it.
        script: whether the program is a person's own script, which makes and ends the default
            group itself, and on which there are no limits.
        set_orders: whether it takes sets in an order of its own.
    """

    rank: int
    size: int
    smaller: list[int]
    path: list[str]
    folder: str
    memory: int
    sealed: bool = False
    subgroups: bool = True
    collectives: bool = True
    transport: str = "headcount.rank.transports.gloo"
    environment: dict[str, str] = {}
    seed: int = 0
    weighed: bool = False
    script: bool = False
    set_orders: bool = False


class Perform(msgspec.Struct, tag="perform", frozen=True):
    """The only frame to a process that carries out one task, and is no rank.

    Attributes:
        task: a function that takes bytes and returns bytes, as ``module:name``.
        data: what it is called with.
        memory: bytes that the process may allocate.
        sealed: whether the process first gives up all system calls that reach beyond it.
    """

    task: str
    data: bytes
    memory: int
    sealed: bool


#: Simulated ranks, and entries that a list for each of them has at most.
_RANKS = 1 << 20

#: Messages of a simulation that are left over, events of its record, and definitions in a file.
_LEFT, _EVENTS, _DEFINITIONS = 1 << 20, 1 << 22, 1 << 20

#: Arguments of a call, and names beside them that a program is bound to.
_ARGUMENTS = 1 << 12

#: Limits on an entry of the store: characters of its key, and bytes of its value; a rank's address
#: takes a few dozen for each of its peers.
LONGEST_KEY, LONGEST_VALUE = 512, 1 << 16

_Key = Annotated[str, Meta(max_length=LONGEST_KEY)]
_Bytes = Annotated[bytes, Meta(max_length=LONGEST_VALUE)]


class Tally(msgspec.Struct, array_like=True, frozen=True):
    """The traffic of simulated ranks; a bound is judged on it as on a trace.

    Attributes:
        messages: the number of messages received, in all.
        sent: bytes sent, by rank.
        elements: elements sent, by rank.
        strangers: messages to ranks that are not neighbours on the ring.
    """

    messages: Amount
    sent: Annotated[list[Amount], Meta(max_length=_RANKS)]
    elements: Annotated[list[Amount], Meta(max_length=_RANKS)]
    strangers: Amount

    @property
    def traffic(self) -> Volume:
        """The numbers that exercises put limits on, except for rounds, which need a trace."""
        return Volume(self.messages, sum(self.sent), max(self.sent, default=0))

    @property
    def stranger_count(self) -> int:
        """Messages to ranks that are not neighbours on the ring."""
        return self.strangers

    @property
    def max_sent_elements(self) -> int:
        """The largest number of elements that one rank sent."""
        return max(self.elements, default=0)


#: The module that carries out :class:`Simulate`, and that no rank imports.
SIMULATOR = "headcount.simulation.process"


class Simulate(msgspec.Struct, tag="simulate", frozen=True):
    """The only frame to a process that simulates ranks, see :mod:`headcount.simulation.launch`.

    Attributes:
        program: a packed :class:`headcount.core.program.Program`.
        entry, adapter: as in :class:`RunCall`.
        arguments: a packed tuple for every rank.
        cluster: a :class:`headcount.simulation.clusters.Cluster` as MessagePack.
        eager: bytes up to which a message leaves at once; −1 for none.
        recorded: the largest number of events to report; 0 for none.
        counted: whether to count what each rank sends.
        answered: whether to report what the ranks hold.
        memory: bytes that the process may allocate.
        path, folder, sealed: as in :class:`Setup`.
        answer_limit, allowed: as in :class:`RunCall`.
        answers: bytes that all ranks together may answer.
        algorithms: functions of :mod:`headcount.simulation.algorithms`, pickled by value.
        modules: the modules that simulate ranks, where the process sees no file of them.
        seeds: by rank, as in :class:`Setup`.
        forced: receives from any rank that have to get the message of one rank: the rank that
            receives, the number of its operation, and the other rank.
        lowest: whether the other ones get, when nothing else can happen, that of the lowest rank,
            and not the first in virtual time.
    """

    program: bytes
    entry: str
    adapter: bytes
    arguments: list[bytes]
    cluster: bytes
    eager: int
    recorded: int
    counted: bool
    answered: bool
    memory: int
    path: list[str]
    folder: str
    sealed: bool
    answer_limit: int
    answers: int
    allowed: list[str] | None = None
    algorithms: dict[str, bytes] = {}
    modules: list[Module] = []
    seeds: list[int] = []
    forced: list[tuple[int, int, int]] = []
    lowest: bool = False


class Load(msgspec.Struct, tag="load", frozen=True):
    """All ranks have joined: form a world of the first ranks, and load a program anew.

    Attributes:
        size: the number of ranks in it.
        program: a packed :class:`headcount.core.program.Program`.
        wanted: the names that will be called; empty for all.
    """

    size: int
    program: bytes
    wanted: list[str] = []


class RunCall(msgspec.Struct, tag="call", frozen=True):
    """Run the program once on these arguments.

    Attributes:
        entry: the name to call.
        arguments: a packed tuple, this rank's own.
        adapter: a pickled function that calls the entry, or empty.
        allowed: names of the collectives that may be called; None allows all.
        strict: see :class:`headcount.rank.recorder.Recorder`.
        watched: elements of the largest tensor whose contents are reported.
        answer_limit: bytes of tensors that may be sent back.
        killed_at: the step at which this rank is killed, see :class:`StepCount`; None for never.
        follows: whether to tell what became of the arguments that the program is bound to.
        replicas: whether to tell what the rank's replicas hold after each step of an optimizer.
        delay: seconds that this rank waits before it enters.
        held: seconds that it stops between two calls of the store.
    """

    entry: str
    arguments: bytes
    adapter: bytes
    allowed: list[str] | None
    strict: bool
    watched: int
    answer_limit: int
    killed_at: int | None = None
    follows: bool = False
    replicas: bool = False
    delay: float = 0.0
    held: float = 0.0


class StoreEntry(msgspec.Struct, tag="told", frozen=True):
    """An entry of the store that the ranks share, see :mod:`headcount.rank.rank_store`.

    Attributes:
        key, value: the entry.
        rank, number: the rank whose request has put it there, and the request's number.
        changed: whether the entry is new; it is not where a comparison has failed.
    """

    key: str
    value: bytes
    rank: int
    number: int
    changed: bool = True


class StoreSeen(msgspec.Struct, tag="seen", frozen=True):
    """All that was in the store when the rank asked, by request ``number``, has been sent."""

    number: int


class Resolved(msgspec.Struct, tag="resolved", frozen=True):
    """Deferred receive ``op`` gets the message of global rank ``source``."""

    op: int
    source: int


class Resumed(msgspec.Struct, tag="resumed", frozen=True):
    """The rank, which has paused, may go on; ``value`` is packed, or empty if there is none."""

    value: bytes


class Inspect(msgspec.Struct, tag="inspect", frozen=True):
    """A question about the rank's threads; :class:`~headcount.core.events.Inspected` answers it."""


#: What a rank writes behind a dump that it was asked for, which comes in many small pieces.
DUMP_END = b"\0"


class DumpStacks(msgspec.Struct, tag="dump", frozen=True):
    """A request to dump the stacks of the rank's threads to its fault handler's pipe."""


ToRank = (
    Perform
    | Simulate
    | Setup
    | Load
    | RunCall
    | Inspect
    | DumpStacks
    | Resolved
    | Resumed
    | StoreSeen
    | StoreEntry
)


class Put(msgspec.Struct, tag="put", array_like=True, frozen=True):
    """A rank's request to change the store that the ranks share.

    Attributes:
        key, value: the entry.
        amount: if given, it is added to the number that is there, and ``value`` is ignored.
        number: the number of the request among this rank's.
        expected: if given, ``value`` is put there only if this is there, or nothing is there and
            this is empty.
    """

    key: _Key
    value: _Bytes
    amount: int | None
    number: int
    expected: _Bytes | None = None


class StoreLookup(msgspec.Struct, tag="look", array_like=True, frozen=True):
    """A rank's request for the entries that have been put into the store until now.

    They have been sent when its answer comes, :class:`StoreSeen` with the same ``number``.
    """

    number: int


class Joined(msgspec.Struct, tag="joined", array_like=True, frozen=True):
    """The rank has joined its group; from here on the student's code may send, too."""


class Ready(msgspec.Struct, tag="ready", array_like=True, frozen=True):
    """The rank has joined its group and loaded the program."""


class Returned(msgspec.Struct, tag="returned", array_like=True, frozen=True):
    """The call returned.

    Attributes:
        value: the packed result.
        arguments: the arguments as they are after the call, packed.
        aliases: positions of arguments that share memory with the result, as text, or with each
            other if there is none.
        time: when the call returned, in nanoseconds.
        replaced: positions of arguments that hold other tensors than before the call.
        omitted: the part of the result that was too large to be sent; empty if nothing was.
        drew: whether the program has drawn random numbers without a seed of its own.
        changes: by name, arguments that came with the program and have changed: packed, as they
            were and as they are.
        unseen: names of such arguments whose changes cannot be told.
    """

    value: bytes
    arguments: bytes
    aliases: Annotated[list[Name], Meta(max_length=_ARGUMENTS)]
    time: Time
    replaced: Annotated[list[Name], Meta(max_length=_ARGUMENTS)] = []
    omitted: Name = ""
    drew: bool = False
    changes: Annotated[list[tuple[Name, bytes, bytes]], Meta(max_length=_ARGUMENTS)] = []
    unseen: Annotated[list[Name], Meta(max_length=_ARGUMENTS)] = []

    @property
    def nbytes(self) -> int:
        """The bytes of all values that it holds."""
        held = (len(before) + len(after) for _, before, after in self.changes)
        return len(self.value) + len(self.arguments) + sum(held)


class Raised(msgspec.Struct, tag="raised", array_like=True, frozen=True):
    """The call, or loading the program, raised.

    Attributes:
        stage: ``join`` or ``simulate`` (in our code), ``load``, ``call`` or ``pack``.
        kind: the name of the exception's class.
        message: its text.
        frames: the student's frames, outermost first: file, line, function.
        transport: whether the transport raised it, as it does when a peer dies.
        expired: whether a wait has reached its time limit.
        unwritten: whether it is the ``NotImplementedError`` of an untouched stub.
        memory: whether an allocation failed.
        forbidden: whether a call was made that the exercise refuses.
        code: the exit status, for ``SystemExit``.
        earlier: the exception that led to this one, in a few words.
        threads: whether threads of the student's still run.
        name, owner: as in :class:`headcount.core.verdict.RaisedException`.
    """

    stage: Name
    kind: Name
    message: Text
    frames: Annotated[list[tuple[Name, Line, Name]], Meta(max_length=64)]
    transport: bool = False
    expired: bool = False
    unwritten: bool = False
    memory: bool = False
    forbidden: bool = False
    code: int | None = None
    earlier: Name = ""
    threads: bool = False
    name: Name = ""
    owner: Name = ""


class Performed(msgspec.Struct, tag="performed", array_like=True, frozen=True):
    """What a task has returned, see :class:`Perform`."""

    data: bytes


class Answered(msgspec.Struct, tag="answered", array_like=True, frozen=True):
    """The result of the next simulated rank, if all have returned and results were asked for.

    Attributes:
        value, arguments, omitted: as in :class:`Returned`.
    """

    value: bytes
    arguments: bytes
    omitted: Name = ""


class Simulated(msgspec.Struct, tag="simulated", array_like=True, frozen=True):
    """The end of a simulation.

    Attributes:
        ended: the ticks at which each rank returned, as text, since they may exceed 64 bits;
            empty unless all have returned.
        messages, nbytes: the numbers of messages and bytes received.
        raised: the exceptions, by rank.
        returned: the ranks that have returned.
        reports: what the ranks report of their calls, each event with its rank, as real ranks
            do.  Without a record that is only what is not complete, did not fit, was left over or
            is probably a mistake.
        whole: whether the reports are the record of all calls.
        events: the record of all messages, those of which built-in collectives consist included;
            empty if it is too long.
        overflow: whether it is too long.
        tally: what each rank has sent, if that was counted.
        excess: bytes that the ranks hold, as far as they were counted, if that is too much
            to be sent; else 0.
        drew: as in :class:`Returned`, of any rank.
    """

    ended: Annotated[list[Name], Meta(max_length=_RANKS)]
    messages: Amount
    nbytes: Amount
    raised: Annotated[dict[int, Raised], Meta(max_length=_RANKS)]
    returned: Annotated[list[int], Meta(max_length=_RANKS)]
    reports: Annotated[list[tuple[int, Event | Matched]], Meta(max_length=_EVENTS)]
    whole: bool = False
    events: Annotated[list[tuple[int, Event | Matched]], Meta(max_length=_EVENTS)] = []
    overflow: bool = False
    tally: Tally | None = None
    excess: Amount = 0
    drew: bool = False


FromRank = (
    Answered
    | Event
    | Joined
    | StoreLookup
    | Performed
    | Put
    | Ready
    | Returned
    | Raised
    | Simulated
)


# The step at which a rank is killed. -------------------------------------------------

#: Stands for the last step of a rank, however many it makes: it is killed as it returns.
AT_RETURN = 1 << 30


class StepCount:
    """A count of the steps of a rank, up to the one at which it is killed.

    A step is what other ranks can learn of: an operation that begins or is complete, and an entry
    that is put into the store.  Step 0 is the beginning of the call, and the last one its end.
    What a rank does between two steps shows nowhere, so every moment of a death is a step.

    The rank counts, and stops at the step; the judge counts what it hears, and kills it.  So a
    rank dies at the same step every time, however fast it runs.

    Args:
        killed_at: the step.
    """

    def __init__(self, killed_at: int) -> None:
        self._left = killed_at

    def reached(self, message: object) -> bool:
        """Return whether the rank has come to the step, with this message at the latest."""
        if isinstance(message, (Posted, Completed, Put)):
            self._left -= 1
        elif isinstance(message, Left) and not message.raised:
            self._left = 0
        return self._left <= 0


# Exceptions between the judge and a rank, for use inside this package. ------------


class BrokenFrame(Exception):
    """Bytes from a rank that our code in it never sends, so that they were forged."""


class Refused(BrokenFrame):
    """A report that an honest rank may send, and that the judge does not take.

    Args:
        what: a text that continues "rank 2".
        diagnosis: the diagnosis of the failure.
    """

    def __init__(self, what: str, diagnosis: Diagnosis) -> None:
        super().__init__(what)
        self.diagnosis = diagnosis


class TooManyMessages(Refused):
    """More operations or events than the judge takes from a rank."""

    def __init__(self, what: str) -> None:
        super().__init__(what, Diagnosis.TOO_MANY_MESSAGES)


# Frames. --------------------------------------------------------------------------

_HEADER = struct.Struct("<I")

#: Largest size of a frame from a rank in bytes; only an answer comes near.
LONGEST = 1 << 30

#: Bytes that all ranks together may report in one call.  A message takes about 300; of eight ranks
#: each may send and receive 20,000 elements one by one.
REPORTS = 48 << 20

#: Largest size of a frame that holds no answer, and how the frames that hold one begin.
_SHORT = 8 << 20
_ANSWERS = tuple(
    bytes([0xA0 + len(tag)]) + tag.encode()
    for tag in ("answered", "performed", "returned", "simulated")
)

#: Characters of what is wrong with a frame that a message quotes.
_QUOTED = 200

#: Bytes of frames that may wait to be sent together.
_PENDING = 1 << 20

_from_rank = msgspec.msgpack.Decoder(FromRank)
_to_rank = msgspec.msgpack.Decoder(ToRank)
_encode = msgspec.msgpack.Encoder().encode


def framed(message: msgspec.Struct) -> tuple[bytes, bytes]:
    """Return the header and the body of a message's frame."""
    body = _encode(message)
    return _HEADER.pack(len(body)), body


#: The number of this process, which the kernel need not be asked for at every frame.
_process = os.getpid()


def _note_process() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_note_process)


class FrameWriter:
    """A rank's writer of frames to the judge, from any thread; small ones may be sent together.

    Attributes:
        written: how many frames have been written.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.written = 0
        self._sock = sock
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._owner = _process

    def write(
        self, message: msgspec.Struct, flush: bool = True, follows: int | None = None
    ) -> bool:
        """Frame a message, unless it comes too late, and return whether it was written.

        Args:
            message: the message.
            flush: whether it is sent before this returns.
            follows: the number of frames written before what the message says; if another thread
                has written one since, that may no longer be so.

        Raises:
            RuntimeError: this process is a child of the one that made the writer.
        """
        if self._owner != _process:
            raise RuntimeError(
                "this process was forked by a rank and is none itself (a DataLoader's worker is"
                " such a one): it cannot communicate, nor return for it"
            )
        body = _encode(message)
        with self._lock:
            if follows is not None and follows != self.written:
                return False
            self.written += 1
            self._pending += _HEADER.pack(len(body))
            self._pending += body
            if flush or len(self._pending) > _PENDING:
                self._send()
        return True

    def flush(self) -> None:
        """Send what has been written, as far as no other thread is about to."""
        # where a signal has interrupted this thread within `write`, the lock never becomes free
        if self._lock.acquire(timeout=1):
            try:
                self._send()
            finally:
                self._lock.release()

    def _send(self) -> None:
        self._sock.sendall(self._pending)
        self._pending.clear()


class FrameReader:
    """A reader that cuts a rank's stream of bytes into messages, however it is chunked.

    Args:
        longest: the largest size of a frame in bytes.

    Attributes:
        budget: bytes of frames that hold no answer, which are all that the judge keeps of a call;
            None for any number.
        spent: bytes of such frames that have come of a budget.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self.budget: int | None = None
        self.spent = 0
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[FromRank]:
        """Yield the messages that ``data`` completes.

        Raises:
            BrokenFrame: a frame is too long, or holds no message of this module.
            TooManyMessages: the budget is spent.
        """
        # mostly whole frames come, of which nothing need be kept
        came: bytes | bytearray | memoryview = data
        if self._buffer:
            self._buffer += data
            came = self._buffer
        start, size, header = 0, len(came), _HEADER.size
        try:
            while size - start >= header:
                (length,) = _HEADER.unpack_from(came, start)
                if length > self.longest:
                    raise BrokenFrame(f"a frame of {length} bytes")
                begin, end = start + header, start + header + length
                if size < end:
                    break
                body = bytes(came[begin:end])
                start = end
                # an array of up to 15 fields begins with one byte, and the tag comes next
                if not body.startswith(_ANSWERS, 1):
                    if length > _SHORT:
                        raise BrokenFrame(f"a frame of {length} bytes that holds no answer")
                    self._spend(length)
                try:
                    yield _from_rank.decode(body)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    told = str(error)[:_QUOTED]
                    raise BrokenFrame(f"a frame that is no message: {told}") from error
        finally:
            if came is self._buffer:
                del self._buffer[:start]
            else:
                self._buffer += came[start:]

    def _spend(self, length: int) -> None:
        if self.budget is None:
            return
        self.spent += length
        if self.spent > self.budget:
            raise TooManyMessages(
                f"tells of more than {self.budget >> 20} MB in one call: it posts, waits or marks"
                " in a loop that goes on for too long, or with very long names"
            )


def read_frames(sock: socket.socket) -> Iterator[ToRank]:
    """Yield the judge's messages to this rank, until the judge closes the socket."""
    stream = sock.makefile("rb")
    while True:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        yield _to_rank.decode(stream.read(*_HEADER.unpack(header)))
