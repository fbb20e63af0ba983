"""The messages between the judge and a rank; :mod:`grader.core.wire` puts them into frames."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator

import msgspec

from grader.core.events import Event, Matched, Outside, Signature
from grader.core.outline import Outline
from grader.core.verdict import Diagnosis, Volume

__all__ = [
    "Answered",
    "BrokenFrame",
    "FrameReader",
    "FrameWriter",
    "RunCall",
    "FromRank",
    "Inspect",
    "Joined",
    "Load",
    "Parse",
    "Parsed",
    "UnmatchedEnd",
    "Put",
    "Raised",
    "Ready",
    "Refused",
    "Resolved",
    "Returned",
    "Setup",
    "Simulate",
    "Simulated",
    "Tally",
    "ToRank",
    "TooManyMessages",
    "StoreEntry",
    "read_frames",
]


class Setup(msgspec.Struct, tag="setup", frozen=True):
    """The first frame to a rank: who it is, and what it finds around it.

    Attributes:
        rank, size: of the rank in its world.
        path: what to put on ``sys.path``.
        folder: the working directory.
        memory: bytes that the rank may allocate beyond what it starts with.
        sealed: give up what could reach beyond it, once it has joined.
        subgroups: whether it may make groups; if sealed, it needs to connect for that.
        backend: what carries the messages, see :mod:`grader.rank.transports`.
        environment: variables to set in the rank's environment.
    """

    rank: int
    size: int
    path: list[str]
    folder: str
    memory: int
    sealed: bool = False
    subgroups: bool = True
    backend: str = "gloo"
    environment: dict[str, str] = {}


class Parse(msgspec.Struct, tag="parse", frozen=True):
    """The only frame to a process that reads a file, see :mod:`grader.launch.parsing`.

    Attributes:
        data: the contents of the file.
        label: its path.
        wanted: names to keep however they are defined.
        sealed: give up first what could reach beyond the process.
    """

    data: bytes
    label: str
    wanted: list[str]
    sealed: bool


class Tally(msgspec.Struct, array_like=True, frozen=True):
    """What was sent, in all and by rank; a bound is judged on it as on a trace.

    Attributes:
        messages: received, in all.
        sent: bytes, by rank.
        elements: by rank.
        strangers: messages to ranks that are no neighbours on the ring.
    """

    messages: int
    sent: list[int]
    elements: list[int]
    strangers: int

    @property
    def traffic(self) -> Volume:
        """The numbers that exercises put limits on, but for rounds: those need a trace."""
        return Volume(self.messages, sum(self.sent), max(self.sent, default=0))

    @property
    def stranger_count(self) -> int:
        """Messages to ranks that are no neighbours on the ring."""
        return self.strangers

    @property
    def max_sent_elements(self) -> int:
        """The most elements that any one rank sent."""
        return max(self.elements, default=0)


class Simulate(msgspec.Struct, tag="simulate", frozen=True):
    """The only frame to a process that simulates ranks, see :mod:`grader.launch.simulation`.

    Attributes:
        program: packed, see :class:`grader.core.program.Program`.
        entry, adapter: as in :class:`RunCall`.
        arguments: a packed tuple for every rank.
        cluster: what messages cost, a :class:`grader.simulation.clusters.Cluster` as MessagePack.
        eager: bytes up to which a message leaves at once; −1 for none.
        recorded: events that are kept; 0 for none.
        counted: whether to count what each rank sends.
        answered: whether to tell what the ranks hold.
        memory: bytes that the process may allocate.
        path, folder, sealed: as in :class:`Setup`.
        answer_limit, allowed: as in :class:`RunCall`.
        answers: bytes that all ranks together may answer.
        algorithms: names, by collective, of those that are not done by the default.
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
    algorithms: dict[str, str] = {}


class Load(msgspec.Struct, tag="load", frozen=True):
    """All ranks have joined: load this packed :class:`grader.core.program.Program`."""

    program: bytes


class RunCall(msgspec.Struct, tag="call", frozen=True):
    """Run the program once on these arguments.

    Attributes:
        entry: the name to call.
        arguments: a packed tuple, this rank's own.
        adapter: a pickled function that calls the entry, or empty.
        allowed: names of the collectives that may be called; None is all.
        strict: see :class:`grader.rank.recorder.Recorder`.
        watched: elements of the largest tensor whose contents are reported.
        answer_limit: bytes of a tensor that is still sent back.
        library: call what this compiled library has under the name; empty for the
            program itself.
    """

    entry: str
    arguments: bytes
    adapter: bytes
    allowed: list[str] | None
    strict: bool
    watched: int
    answer_limit: int
    library: str = ""


class StoreEntry(msgspec.Struct, tag="told", frozen=True):
    """An entry of the store that the ranks share, see :mod:`grader.rank.rank_store`.

    Attributes:
        key, value: of the entry.
        rank, number: whose request has put it there, and its number.
    """

    key: str
    value: bytes
    rank: int
    number: int


class Resolved(msgspec.Struct, tag="resolved", frozen=True):
    """Deferred receive ``op`` gets the message of global rank ``source``."""

    op: int
    source: int


class Inspect(msgspec.Struct, tag="inspect", frozen=True):
    """Say what your threads do: the answer is an :class:`~grader.core.events.Inspected`."""


ToRank = Parse | Simulate | Setup | Load | RunCall | Inspect | Resolved | StoreEntry


class Put(msgspec.Struct, tag="put", array_like=True, frozen=True):
    """Something for the store that the ranks share.

    Attributes:
        key, value: of the entry.
        amount: add this to the number that is there, and ignore ``value``.
        number: of this rank's requests.
    """

    key: str
    value: bytes
    amount: int | None
    number: int


class Joined(msgspec.Struct, tag="joined", array_like=True, frozen=True):
    """The rank has joined its group; from here on a stranger's code may speak."""


class Ready(msgspec.Struct, tag="ready", array_like=True, frozen=True):
    """The rank has joined its group and loaded the program."""

    backend: str


class Returned(msgspec.Struct, tag="returned", array_like=True, frozen=True):
    """The call returned.

    Attributes:
        value: the packed result.
        arguments: the arguments as they are after the call, packed.
        aliases: pairs of places, in the result and in the arguments, that
            share memory.
        time: nanoseconds when the call had returned.
        replaced: places of arguments that hold other tensors than before the call.
        omitted: what of the result was too much to be sent; empty if nothing was.
    """

    value: bytes
    arguments: bytes
    aliases: list[str]
    time: int
    replaced: list[str] = []
    omitted: str = ""


class Raised(msgspec.Struct, tag="raised", array_like=True, frozen=True):
    """The call, or loading the program, raised.

    Attributes:
        stage: ``join`` and ``simulate`` (the grader's own), ``load``, ``call`` or ``pack``.
        kind: name of the exception's class.
        message: its text.
        frames: the student's frames, outermost first: file, line, function.
        transport: whether the transport raised it, as it does when a peer dies.
        unwritten: whether it is the ``NotImplementedError`` of an untouched stub.
        memory: whether an allocation failed.
        forbidden: whether something was called that the exercise refuses.
        code: exit status, for ``SystemExit``.
        earlier: the exception that this one followed from, in a few words.
    """

    stage: str
    kind: str
    message: str
    frames: list[tuple[str, int, str]]
    transport: bool = False
    expired: bool = False
    unwritten: bool = False
    memory: bool = False
    forbidden: bool = False
    code: int | None = None
    earlier: str = ""


class Parsed(msgspec.Struct, tag="parsed", array_like=True, frozen=True):
    """What a file defines; the fields are those of a ``Submission``.

    Attributes:
        program: the packed :class:`grader.core.program.Program`.
        names, sources: as there.
        broken, unparsed: as there; a fault is a label, a line and a message.
        prints: fingerprints of the wanted functions, see :mod:`grader.submission.winnowing`.
        outlines: what the source of the wanted functions says, see :mod:`grader.core.outline`.
        error: why it is no submission at all, or empty.
    """

    program: bytes
    names: list[str]
    broken: dict[str, tuple[str, int, str]]
    unparsed: list[tuple[str, int, str]]
    sources: dict[str, str]
    prints: dict[str, list[int]] = {}
    outlines: dict[str, list[Outline]] = {}
    error: str = ""


class UnmatchedEnd(msgspec.Struct, array_like=True, frozen=True):
    """One end of a message that has no other end when nothing goes on any more.

    Or one that nobody has seen complete, although all ranks have returned; or a rank's
    call of a collective that others have not made.

    Attributes:
        rank, kind, peer, tag, group, count, nbytes, dtype, detail: as of an operation.
        awaited: whether its rank waits for it.
        file, line: where it was posted.
        stands: where its rank stands, if it waits.
        matched: whether it has its other end.
        signatures: of a collective, as of an operation.
    """

    rank: int
    kind: str
    peer: int
    tag: int
    group: str
    count: int
    nbytes: int
    dtype: str
    awaited: bool
    file: str
    line: int
    detail: str = ""
    stands: tuple[str, int] = ("", 0)
    matched: bool = False
    signatures: list[Signature] = []


class Answered(msgspec.Struct, tag="answered", array_like=True, frozen=True):
    """What the next simulated rank holds, if all have returned and it was asked for.

    Attributes:
        value, arguments, omitted: as of :class:`Returned`.
    """

    value: bytes
    arguments: bytes
    omitted: str = ""


class Simulated(msgspec.Struct, tag="simulated", array_like=True, frozen=True):
    """How a simulation has ended.

    Attributes:
        ended: ticks when each rank had returned, as text: they are more than 64 bits
            hold; empty unless all have.
        messages, nbytes: that were received.
        raised: by rank, of those that raised.
        returned: ranks that have.
        pending: what nobody had answered, what did not fit, or was left over.
        groups: members of the groups that were made, by name.
        events: what was recorded, with the ranks; empty if it was too much.
        overflow: whether it was.
        tally: what each rank has sent, if that was counted.
        outside: calls of ranks on groups that they are not in.
        excess: bytes that the ranks hold, as far as they were counted, if that is too much
            to be told.
    """

    ended: list[str]
    messages: int
    nbytes: int
    raised: dict[int, Raised]
    returned: list[int]
    pending: list[UnmatchedEnd]
    groups: dict[str, list[int]]
    events: list[tuple[int, Event | Matched]] = []
    overflow: bool = False
    tally: Tally | None = None
    outside: list[tuple[int, Outside]] = []
    excess: int = 0


FromRank = Answered | Event | Joined | Parsed | Put | Ready | Returned | Raised | Simulated


# What can go wrong between the judge and a rank, for use inside this package. -----


class BrokenFrame(Exception):
    """Bytes from a rank that no program of ours sends; someone wrote into the pipe."""


class Refused(BrokenFrame):
    """What an honest rank may say, and the judge does not take.

    Args:
        what: reads after "rank 2".
        diagnosis: the word for it.
    """

    def __init__(self, what: str, diagnosis: Diagnosis) -> None:
        super().__init__(what)
        self.diagnosis = diagnosis


class TooManyMessages(Refused):
    """More operations, or news of them, than the judge will remember."""

    def __init__(self, what: str) -> None:
        super().__init__(what, Diagnosis.TOO_MANY_MESSAGES)


# Frames. --------------------------------------------------------------------------

_HEADER = struct.Struct("<I")

#: No frame from a rank is longer: an answer, and nothing else, comes near.
LONGEST = 1 << 30

#: Bytes of frames that may wait for company.
_COMPANY = 1 << 20

_from_rank = msgspec.msgpack.Decoder(FromRank)
_to_rank = msgspec.msgpack.Decoder(ToRank)
_encode = msgspec.msgpack.Encoder().encode


class FrameWriter:
    """Writes frames to a socket from any thread; small ones may wait for company."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def write(self, message: msgspec.Struct, flush: bool = True) -> None:
        """Frame a message; with ``flush``, it has left when this returns.

        Raises:
            RuntimeError: this is a child of the process that speaks here.
        """
        if os.getpid() != self._owner:
            raise RuntimeError(
                "this process was forked by a rank and is none itself: it cannot communicate,"
                " nor return for it"
            )
        body = _encode(message)
        with self._lock:
            self._pending += _HEADER.pack(len(body))
            self._pending += body
            if flush or len(self._pending) > _COMPANY:
                self._sock.sendall(self._pending)
                self._pending.clear()


class FrameReader:
    """Cuts a rank's stream of bytes into messages, whatever the chunks.

    Args:
        longest: bytes of the longest frame that is believed.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[FromRank]:
        """The messages that are complete once ``data`` has come.

        Raises:
            BrokenFrame: a frame is too long, or no message of ours.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= _HEADER.size:
                (length,) = _HEADER.unpack_from(self._buffer, start)
                if length > self.longest:
                    raise BrokenFrame(f"a frame of {length} bytes")
                end = start + _HEADER.size + length
                if len(self._buffer) < end:
                    break
                body = bytes(memoryview(self._buffer)[start + _HEADER.size : end])
                start = end
                try:
                    yield _from_rank.decode(body)
                except msgspec.MsgspecError as error:
                    raise BrokenFrame(f"a frame that is no message: {error}") from error
        finally:
            del self._buffer[:start]


def read_frames(sock: socket.socket) -> Iterator[ToRank]:
    """The judge's messages to this rank, until the judge hangs up."""
    stream = sock.makefile("rb")
    while True:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        yield _to_rank.decode(stream.read(*_HEADER.unpack(header)))
