"""What happened in a run of ranks, as data.

Reports render it; nothing here knows how.  The words of :class:`Diagnosis` are the vocabulary that
the command line's JSON shares with other programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

__all__ = [
    "BESIDE",
    "HEADCOUNT",
    "PATH",
    "Diagnosis",
    "Failure",
    "Grade",
    "Gravity",
    "Hang",
    "HangKind",
    "RaisedException",
    "Site",
    "Traffic",
    "Volume",
    "Wait",
    "amount",
    "counted",
    "ordinal",
    "folded",
    "ranks_text",
    "duration",
]


class Gravity(IntEnum):
    """How grave a fault is beside those of other runs, from the slightest to the gravest.

    The gravest fault of an answer leads its verdict; of equally grave ones, that of the smallest
    world does, where it is easiest to follow.
    """

    #: The values are right, and too much or too little is sent for them, or too late.
    COSTLY = 1
    #: A run ends without a right result.
    WRONG = 2
    #: A run does not end.
    HANGS = 3
    #: It costs all points of the exercise, which the verdict has to explain.
    WORTHLESS = 4


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """The fields of a :class:`Diagnosis`, which says what they mean."""

    word: str = field(kw_only=False)
    words: str
    meaning: str
    advice: str = ""
    gravity: Gravity = Gravity.WRONG
    reported_by_rank: bool = False
    communication_fault: bool = False
    untrusted: bool = False
    recoverable: bool = False
    nothing_done: bool = False
    too_little: str = ""


class Diagnosis(str, Enum):
    """One word for what is wrong with an answer, and all that is known of that word.

    To add one, add an entry, and the code that finds it.  No other module lists diagnoses: which
    of several failures is the cause, what a rank may report by itself, the exit status of ``run``,
    what earns points, what to try in general, and the table in ``docs/teaching.md`` follow from
    the entry.

    The order is that of precedence, from causes to consequences: when ranks of one run
    fail in different ways, the first diagnosis in this list is the cause, and no later
    one hides it.  Different runs are not causes of each other; among them, ``gravity`` decides.

    Attributes:
        words: what people are told it is, such as "wrong result".
        meaning: what it means, in a few words that complete "the answer ...".
        advice: what to try, where nothing more particular is known; empty where the
            exercise's own first hint says more.
        gravity: how grave it is beside the diagnoses of other runs.
        reported_by_rank: whether a rank's recorder finds it, and may report it.  The judge
            finds all others, and takes a rank that reports one for a forgery.
        communication_fault: whether the calls of the ranks are at fault, and not other code of a
            script: ``run`` exits with 3, and says where the ranks' calls differ.
        untrusted: whether what ranks have told cannot be relied on: ``run`` exits with 5.
        recoverable: whether ranks that have all returned or raised after it are as good as before,
            and can be called again.
        nothing_done: whether there is no work of a learner's to judge: it is no attempt in the
            progress, no mistake in a term, looks untouched and earns nothing.
        too_little: the word for too little of what this is too much of; empty where there is none.
    """

    _value_: str
    words: str
    meaning: str
    advice: str
    gravity: Gravity
    reported_by_rank: bool
    communication_fault: bool
    untrusted: bool
    recoverable: bool
    nothing_done: bool
    too_little: str

    def __new__(cls, entry: _Fields | str) -> Diagnosis:
        """Make a member whose value is the word alone; once all are made, a word finds its own."""
        assert isinstance(entry, _Fields), "an entry has its fields"
        member = str.__new__(cls, entry.word)
        member._value_ = entry.word
        vars(member).update(vars(entry))
        return member

    # How a run of ranks fails. -------------------------------------------------------

    TAMPERING = _Fields(
        "tampering",
        words="unexpected data",
        meaning="sends the judge something that no honest answer sends",
        gravity=Gravity.WORTHLESS,
        untrusted=True,
    )
    MALFORMED_REPORT = _Fields(
        "malformed_report",
        words="a report that makes no sense",
        meaning="reports what the judge cannot make sense of",
        advice="A rank's messages to the judge were damaged: does the program write to files,"
        " sockets or memory that are not its own? If not, the fault is the judge's: please report"
        " it.",
        gravity=Gravity.WORTHLESS,
        untrusted=True,
    )
    FORBIDDEN_CALL = _Fields(
        "forbidden_call",
        words="something that is not allowed here",
        meaning="calls what it should write itself",
        advice="Leave this call out, and make do with those that the message allows.",
        gravity=Gravity.WORTHLESS,
        reported_by_rank=True,
        communication_fault=True,
    )
    OUTPUT_LIMIT = _Fields(
        "output_limit",
        words="too much output",
        meaning="prints too much",
        advice="Take the print out of the loop.",
    )
    TOO_MANY_MESSAGES = _Fields(
        "too_many_messages",
        words="too many messages",
        meaning="sends more messages than the exercise allows",
        advice="Which message carries something that its receiver already has, or never uses?",
        gravity=Gravity.COSTLY,
        too_little="too_few_messages",
    )
    NOT_ATTEMPTED = _Fields(
        "not_attempted",
        words="not attempted",
        meaning="still raises the stub's NotImplementedError",
        nothing_done=True,
    )
    ORDER_MISMATCH = _Fields(
        "order_mismatch",
        words="ranks disagree on the call",
        meaning="calls different collectives on different ranks, or in another order",
        advice="Collectives are matched by order: every rank has to make the same calls in the"
        " same order.",
        communication_fault=True,
    )
    DTYPE_MISMATCH = _Fields(
        "dtype_mismatch",
        words="dtypes differ at the two ends",
        meaning="sends a message of one dtype into a buffer of another",
        advice="Both ends of a message need the same dtype; the bits are not converted."
        " torch.empty_like keeps it.",
        communication_fault=True,
    )
    SIZE_MISMATCH = _Fields(
        "size_mismatch",
        words="sizes differ at the two ends",
        meaning="sends a message into a buffer of another size",
        advice="Both ends of a message need tensors of the same number of elements:"
        " torch.empty_like helps.",
        communication_fault=True,
    )
    BUFFER_RACE = _Fields(
        "buffer_race",
        words="a buffer is used while in flight",
        meaning="uses a tensor while it is in flight",
        advice="Between isend, irecv or a collective with async_op=True and its wait() the tensor"
        " belongs to the transport: use another one, or wait first.",
        reported_by_rank=True,
        communication_fault=True,
        recoverable=True,
    )
    MEMORY_LIMIT = _Fields(
        "memory_limit",
        words="too much memory",
        meaning="needs too much memory",
        advice="Is a tensor made in a loop, or with a shape that is far too large?",
    )
    EXCEPTION = _Fields(
        "exception",
        words="exception",
        meaning="raises an exception",
        advice="It failed in the quoted line; of several, in the last one. To try it on its own:"
        " run(function, world_size, arguments...).",
        recoverable=True,
    )
    CRASHED = _Fields(
        "crashed",
        words="crashed",
        meaning="is killed by a signal",
        advice="A crash below Python can come from a buffer of the wrong size or type: check those"
        " of every message.",
    )
    EXITED = _Fields(
        "exited",
        words="ended its process",
        meaning="ends its process",
        advice="A rank has to return; it may not call sys.exit or os._exit.",
    )
    DEADLOCK = _Fields(
        "deadlock",
        words="deadlock",
        meaning="has ranks that wait for each other forever",
        advice="Follow the lines above from rank to rank. What is each of them waiting for, and"
        " which rank should have made that call?",
        gravity=Gravity.HANGS,
        communication_fault=True,
    )
    TIMEOUT = _Fields(
        "timeout",
        words="out of time",
        meaning="runs out of time",
        advice="Look at the line that is named: does the loop there ever end?",
        gravity=Gravity.HANGS,
    )
    UNMATCHED_MESSAGE = _Fields(
        "unmatched_message",
        words="a message is never received",
        meaning="sends a message that is never received",
        advice="A message was sent that is never received: count the sends and the receives of the"
        " two ranks.",
        communication_fault=True,
    )
    UNWAITED_REQUEST = _Fields(
        "unwaited_request",
        words="a request is never waited for",
        meaning="never waits for a request",
        advice="Keep what isend and irecv return, and call wait() on each before you return.",
        communication_fault=True,
    )

    # What a submission lacks. --------------------------------------------------------

    MISSING = _Fields(
        "missing",
        words="not defined",
        meaning="is not in the file",
        advice="Define it at the top level of the file or in a cell of its own, under exactly this"
        " name.",
        nothing_done=True,
    )
    SYNTAX_ERROR = _Fields(
        "syntax_error",
        words="syntax error",
        meaning="does not parse",
        advice="Run it as it is: Python points at the place.",
    )

    # What is wrong with a result. ----------------------------------------------------

    WRONG_TYPE = _Fields(
        "wrong_type",
        words="wrong type",
        meaning="returns another type than the exercise asks for",
        advice="Compare with the signature: what is returned, and what is changed in place?",
    )
    WRONG_SHAPE = _Fields(
        "wrong_shape",
        words="wrong shape",
        meaning="ends with a tensor of another shape",
        advice="Which of your lines makes the result, and what shape does it have there? The"
        " message names the one that is asked for.",
    )
    WRONG_DTYPE = _Fields(
        "wrong_dtype",
        words="wrong dtype",
        meaning="ends with a tensor of another dtype",
        advice="torch.zeros makes float32 unless it is told otherwise; x.new_zeros(shape) keeps the"
        " dtype of x.",
    )
    WRONG_VALUE = _Fields(
        "wrong_value",
        words="wrong result",
        meaning="ends with other values",
    )
    INPUT_CHANGED = _Fields(
        "input_changed",
        words="an argument is changed",
        meaning="changes an argument that has to stay as it is",
        advice="Work on a copy: x.clone().",
    )
    ALIASED = _Fields(
        "aliased",
        words="memory is shared",
        meaning="returns memory that it shares with an argument",
        advice="Return a copy: x.clone().",
    )
    NONDETERMINISTIC = _Fields(
        "nondeterministic",
        words="bits that differ",
        meaning="ends with different bits on different ranks, or in different runs",
        advice="Rounding depends on the order of additions: combine in the order of the ranks, not"
        " of arrival, and in the same order on every rank.",
    )
    WRONG_GRADIENT = _Fields(
        "wrong_gradient",
        words="wrong gradient",
        meaning="lets a wrong gradient flow back",
        advice="Use torch operations that autograd knows, on the tensors that you were given: no"
        " .data, no .detach(), no torch.no_grad(), no numbers taken out with .item().",
    )

    # What is wrong with the traffic. -------------------------------------------------

    TOO_FEW_MESSAGES = _Fields(
        "too_few_messages",
        words="too few messages",
        meaning="sends fewer messages than the work takes",
        advice="Fewer messages than the exercise asks for cannot do the work: is something sent in"
        " a larger piece than it should be?",
        gravity=Gravity.COSTLY,
    )
    TOO_MANY_BYTES = _Fields(
        "too_many_bytes",
        words="too many bytes",
        meaning="sends more bytes than the exercise allows",
        advice="Send only what the other side needs.",
        gravity=Gravity.COSTLY,
        too_little="too_few_bytes",
    )
    TOO_FEW_BYTES = _Fields(
        "too_few_bytes",
        words="too few bytes",
        meaning="sends fewer bytes than the work takes",
        advice="Less is sent than has to be moved.",
        gravity=Gravity.COSTLY,
    )
    TOO_MANY_ROUNDS = _Fields(
        "too_many_rounds",
        words="too many rounds",
        meaning="takes more rounds than the exercise allows",
        advice="Messages that could travel at the same time wait for each other: start them with"
        " isend and irecv.",
        gravity=Gravity.COSTLY,
        too_little="too_few_rounds",
    )
    TOO_FEW_ROUNDS = _Fields(
        "too_few_rounds",
        words="too few rounds",
        meaning="takes fewer rounds than the algorithm does",
        advice="Fewer rounds than the algorithm takes: is it the one that is asked for?",
        gravity=Gravity.COSTLY,
    )
    TOO_MANY_SECONDS = _Fields(
        "too_many_seconds",
        words="too many virtual seconds",
        meaning="takes more virtual time than the exercise allows",
        advice="Somewhere a rank waits although it could be working, or it does the same work"
        " twice. If a line is named, which rank does it wait for there?",
        gravity=Gravity.COSTLY,
        too_little="too_few_seconds",
    )
    TOO_FEW_SECONDS = _Fields(
        "too_few_seconds",
        words="too few virtual seconds",
        meaning="takes less virtual time than the work takes",
        advice="Less time has passed than the work takes. Is all of it done, and in the order that"
        " is asked for?",
        gravity=Gravity.COSTLY,
    )
    NOT_NEIGHBOUR = _Fields(
        "not_neighbour",
        words="not a neighbour",
        meaning="sends to a rank that is not a neighbour on the ring",
        advice="On a ring a rank sends to (rank ± 1) % world_size only.",
        gravity=Gravity.COSTLY,
    )
    NOT_SYNCHRONIZED = _Fields(
        "not_synchronized",
        words="ranks do not wait for each other",
        meaning="lets a rank go on before all others have come",
        advice="A rank knows that another has come only once a message tells it so, from that rank"
        " or through others.",
    )
    REPLICAS_DIFFER = _Fields(
        "replicas_differ",
        words="replicas differ",
        meaning="holds replicas, or values, that differ from those of other ranks",
        advice="Which call should have made them the same, and does every rank make it?",
        communication_fault=True,
    )
    WRONG_PEER = _Fields(
        "wrong_peer",
        words="a message between the wrong ranks",
        meaning="sends between ranks that have nothing to say to each other in the exercise",
        advice="Go through the statement again: which ranks exchange messages, and which do not?",
    )
    NO_OVERLAP = _Fields(
        "no_overlap",
        words="no overlap",
        meaning="does not communicate while it computes",
        gravity=Gravity.COSTLY,
    )

    __str__ = str.__str__

    @property
    def hangs(self) -> bool:
        """Whether a run with it does not end."""
        return self.gravity is Gravity.HANGS

    @property
    def runs_out(self) -> bool:
        """Whether only a time limit ends a run with it; a deadlock is found long before."""
        return self.hangs and not self.communication_fault

    @property
    def between_ranks(self) -> bool:
        """Whether it takes several ranks to see it, so that the lines of all are of interest."""
        return self.hangs or (self.communication_fault and not self.reported_by_rank)

    @property
    def worthless(self) -> bool:
        """Whether it costs all points of the exercise."""
        return self.nothing_done or self.gravity is Gravity.WORTHLESS

    @property
    def final(self) -> bool:
        """Whether further cases show nothing new, or each would take its whole time limit."""
        return self.worthless or self.runs_out

    @property
    def opposite(self) -> Diagnosis:
        """The diagnosis for too little of what this is too much of; itself if it says both."""
        return Diagnosis(self.too_little or self)

    @property
    def precedence(self) -> int:
        """The place in the list of causes: of several failures, the smallest is the cause."""
        return _PRECEDENCE[self]


_PRECEDENCE = {diagnosis: place for place, diagnosis in enumerate(Diagnosis)}


#: The beginning of the names of files that were handed in beside an answer.
BESIDE = "./"

#: Begins the file of a place in a person's own script, which is named with its line.
PATH = "file:"


@dataclass(frozen=True)
class Site:
    """A place in the student's source: the file or notebook cell, and the line."""

    file: str
    line: int

    def __str__(self) -> str:
        # A cell is part of the place ("cell 3, line 5"); the name of a file or
        # of IPython's temporary file for a live cell says nothing new, that of a
        # module beside the answer does.
        if self.file.startswith("cell "):
            return f"{self.file}, line {self.line}"
        if self.file.startswith(BESIDE):
            return f"{self.file.removeprefix(BESIDE)}, line {self.line}"
        if self.file.startswith(PATH):
            return f"{self.path}:{self.line}"
        return f"line {self.line}"

    @property
    def path(self) -> str:
        """The file's name without what marks it."""
        return self.file.removeprefix(PATH)


@dataclass(frozen=True)
class SourceLine:
    """A line of the student's source that a failure points at.

    Attributes:
        site: where it is.
        function: the function that was running there, in a traceback.
        text: the line itself; empty where nobody knows it.
        place: how a report calls the site, such as "In [3], line 2", where its line
            alone does not tell.
        role: what the line has to do with it, such as "the last receive of rank 0".
    """

    site: Site
    function: str = ""
    text: str = ""
    place: str = ""
    role: str = ""

    def __str__(self) -> str:
        where = self.place or str(self.site)
        if self.function:
            where += f", in {self.function}"
        if self.role:
            where += f" ({self.role})"
        return f"{where}:  {self.text}" if self.text else where


@dataclass(frozen=True)
class ArrivalOrders:
    """How many orders of arrival were tried, of those that are known to be possible.

    ``exhausted`` is whether no others are: where a choice has not been tried, more may
    follow from it.
    """

    tried: int
    known: int
    exhausted: bool

    def __add__(self, other: ArrivalOrders) -> ArrivalOrders:
        """Return the orders of two cases, taken together."""
        return ArrivalOrders(
            self.tried + other.tried,
            self.known + other.known,
            self.exhausted and other.exhausted,
        )

    def __str__(self) -> str:
        if self.exhausted:
            return f"all {self.tried} orders tried"
        return f"{self.tried} of {self.known} known orders tried"


@dataclass(frozen=True)
class Volume:
    """How much a run sent, point to point.

    Attributes:
        messages: messages sent, summed over ranks.
        bytes: bytes sent, summed over ranks.
        max_sent: the most bytes that any one rank sent.
    """

    messages: int = 0
    bytes: int = 0
    max_sent: int = 0


@dataclass(frozen=True)
class Traffic(Volume):
    """How much a run sent, and in how many rounds.

    Attributes:
        rounds: the makespan when every message takes one unit of time and
            every rank sends at most one and receives at most one at a time.
        seconds: the makespan when a message of b bytes takes α + b·β; None where the run is
            not compared with other ways.
    """

    rounds: int = 0
    seconds: float | None = None


#: Units of time, the largest first, in seconds.
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration(seconds: float, digits: int = 5) -> str:
    """Return a time in the largest unit of which it has at least one, such as ``2.0476 ms``."""
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{seconds / unit:.{digits}g} {name}"
    return f"{seconds / 1e-12:.{digits}g} ps" if seconds else "0 s"


def ranks_text(ranks: Iterable[int]) -> str:
    """Return ranks in words: ``ranks 0, 1 and 2``, ``ranks 0-31 and 40``; of many, the first."""
    *most, last = _runs(ranks, 4)
    if not most:
        return f"rank{'s' * ('-' in last)} {last}"
    shown = [*most[:6], "…"] if len(most) > 6 else most
    return f"ranks {', '.join(shown)} and {last}"


def folded(ranks: Sequence[int]) -> str:
    """Return all of many ranks in few words: ``ranks 0-31, 40``, or ``ranks 0, 8 … 56``."""
    step = ranks[1] - ranks[0] if len(ranks) > 3 else 1
    if step > 1 and list(ranks) == list(range(ranks[0], ranks[-1] + 1, step)):
        return f"ranks {ranks[0]}, {ranks[1]} … {ranks[-1]}"
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(_runs(ranks, 3))}"


def _runs(ranks: Iterable[int], least: int) -> list[str]:
    """Return ranks as texts, with one for each run of ``least`` or more."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return [
        text
        for run in runs
        for text in ([f"{run[0]}-{run[-1]}"] if len(run) >= least else map(str, run))
    ]


def amount(nbytes: int) -> str:
    """Return bytes in the largest unit (of powers of 1000) that fits, such as ``8.4 MB``."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} bytes"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: "1 message", "2,000 messages"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def ordinal(number: int) -> str:
    """Return a number as it counts places: "1st", "112th"."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else suffix}"


@dataclass(frozen=True)
class Wait:
    """An edge of the wait-for graph: a rank that cannot go on, and whom it waits for.

    ``text`` reads like "waits to send to rank 1 at line 5".  ``call`` is what it
    waits in: ``send``, ``recv``, or the name of a collective.  Of several peers
    it needs all, as in a collective, unless ``any_of`` them would do.  ``other_tag`` says that one
    of them has posted the other end, with another tag.
    """

    rank: int
    peers: tuple[int, ...]
    text: str
    site: Site | None = None
    call: str = ""
    any_of: bool = False
    other_tag: bool = False


class HangKind(str, Enum):
    """How a part of a job has come to stand still."""

    #: some ranks wait in a call, and others, who stand elsewhere or are gone, have not made it
    NEVER_ENTERED = "never entered"
    #: the ranks of a group have made different calls in the same place
    ENTERED_DIFFERENTLY = "entered differently"
    #: each waits for the next; no rank is late, and the order is wrong
    CIRCLE = "a circle"
    #: the network or a device, unless they differ in what is not recorded
    NONE_LEFT = "all entered and none left"

    __str__ = str.__str__


class Grade(str, Enum):
    """How much is known of what is said of a hang, or in a hint."""

    #: it follows from what the ranks have done, or from the source
    ESTABLISHED = "established"
    #: all that was seen speaks for it, but something else, as a rank that is slow, looks the same
    SUPPORTED = "supported"
    #: nobody can tell from what was seen
    OPEN = "open"

    __str__ = str.__str__


#: Ranks of a circle that a text shows.
_RING = 16

#: What has become of culprits: of one, and of several.
_FATES = {
    "ended": ("has already ended, and", "have already ended, and"),
    "returned": ("has already returned, and", "have already returned, and"),
    "killed": ("has been killed, and", "have been killed, and"),
    "gone": ("is gone, and", "are gone, and"),
    "silent": ("left no dump that can be read, and",) * 2,
}


@dataclass(frozen=True)
class Hang:
    """What holds up a part of a job, in the words of ``run``, ``attach`` and ``explain``.

    Attributes:
        kind: how it has come about.
        grade: how much of it is known.
        culprits: the ranks that others wait for and that wait for nobody, across all groups; those
            of a circle; of different calls, the fewest; of a call that none has left, all.
        held: the ranks that wait for them, or for ranks that do.
        fate: what has become of the culprits: ``ended``, ``returned``, ``killed``, ``gone``, or
            ``silent`` where they left no dump; empty if they go on, or if nobody knows.
    """

    kind: HangKind
    grade: Grade
    culprits: tuple[int, ...]
    held: tuple[int, ...]
    fate: str = ""

    @property
    def label(self) -> str:
        """The kind and the grade, which come before all else that is said of it."""
        return f"{self.kind} ({self.grade})"

    def __str__(self) -> str:
        who, behind = folded(self.culprits), folded(self.held) if self.held else ""
        several = len(self.culprits) > 1
        if self.kind is HangKind.CIRCLE:
            ring = self.culprits[:_RING]
            way = " → ".join(map(str, (*ring, *["…"] * (len(self.culprits) > _RING), ring[0])))
            return f"{way}, each waits for the next{f', and {behind} behind them' * bool(behind)}"
        if self.kind is HangKind.NONE_LEFT:
            return f"{who}; the network or a device, or what is not recorded, such as the root"
        if self.kind is HangKind.ENTERED_DIFFERENTLY:
            if not behind:
                return f"{who} are in different calls"
            return f"{who} {'are' if several else 'is'} in another call than {behind}"
        fate = f" {_FATES[self.fate][several]}" if self.fate else ""
        return f"{who}{fate} {'hold' if several else 'holds'} up {behind}"


#: The owner of exceptions with which headcount refuses a call.
HEADCOUNT = "headcount"


class RaisedException(NamedTuple):
    """An exception that a rank has raised.

    Attributes:
        kind: the name of its class.
        message: its text.
        name: what Python could not use: a name that is not defined or has no value yet, an
            attribute that is not there, a function that was called with other arguments than it
            takes; empty for all other exceptions.
        owner: the module, or the class of the object with its module, that lacks the attribute;
            :data:`HEADCOUNT` for one of its own exceptions, whose names any class may have.
    """

    kind: str = ""
    message: str = ""
    name: str = ""
    owner: str = ""


_NOTHING_RAISED = RaisedException()


@dataclass(frozen=True)
class Failure:
    """Why a run of ranks ended badly.

    Attributes:
        diagnosis: the word.
        message: one sentence, naming rank, line, what was expected and came.
        rank: the rank at fault, or ``None`` where no single one is.
        site: the place in the student's source, if one is known.
        detail: further lines, such as the other ranks of a deadlock: what the message does not say.
        frames: the student's part of a traceback, outermost call first; else the lines
            that the message names, once their source is known.
    """

    diagnosis: Diagnosis
    message: str
    rank: int | None = None
    site: Site | None = None
    detail: tuple[str, ...] = ()
    frames: tuple[SourceLine, ...] = ()
    #: of a deadlock: everyone who waits, the ranks of a cycle, if there is one,
    #: and those that others wait for although they have returned, or have been killed
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    #: of an exception
    raised: RaisedException = _NOTHING_RAISED
    #: of a buffer race: the operation that uses the buffer, if it is one, and the one in flight
    race: tuple[str, ...] = ()
    #: of a collective to which each rank gives one tensor: two sizes that should be the same
    sizes: tuple[int, ...] = ()
    #: of calls that do not match: who has made each, the fewest first, and the line
    sides: tuple[tuple[tuple[int, ...], Site], ...] = ()
    #: of ranks that wait, or have made different calls: who holds up whom
    hang: Hang | None = None
