"""Whatever comes from a process that runs a submission, the verdict is on the submission.

Frames are drawn from the types of the wire, so that a new message is tried as soon as it is there.
"""

from __future__ import annotations

import os

import msgspec
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from grader.api import catalogue
from grader.classroom.grading import parse, plan
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.submission.outline import outline
from grader.submission.parsing import FileDefinitions
from grader.submission.submission import Submission
from headcount.core import events
from headcount.core.codec import pack
from headcount.core.errors import UnreadableFile
from headcount.core.events import ANY, WORLD, Blocked, Completed, Entered, Grouped, Left, Posted
from headcount.core.wire import Answered, FromRank, Performed, Ready, Returned, Simulated, framed
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate
from support.scripted import Scripted

CATALOGUE = catalogue()

#: Exercises whose limits, proofs and hints look at the record in many ways.
NAMES = (
    "barrier", "broadcast", "ring_all_reduce", "all_to_all", "average_gradients", "run_pipeline",
    "hierarchical_all_reduce", "sum_of_survivors",
)  # fmt: skip

#: Words that mean something to the judge.
WORDS = (
    "send", "recv", "all_reduce", "all_gather", "new_group", WORLD, "pair", "float32", "int64",
    "SUM", "", "answer.py", "<frozen os>", "cell 3", "\ud83d\ude00", "argument", "result", "load",
    "call", "join", "simulate", "deadlock", "buffer_race", "0", "1", "9" * 300, "\x1b[2J",
    "a" * 1024,
)  # fmt: skip

#: Packed values, some of which are none.
VALUES = (
    *map(pack, (None, 0, True, 1.5, "x", [], (), {"a": 1}, {1, 2}, 2**70, torch.float32)),
    *map(pack, (torch.zeros(3), torch.ones(2, 2).bfloat16(), torch.zeros(0), [torch.zeros(1)])),
    pack(torch.ones(1).expand(10**9), 10), pack((torch.ones(3),)), pack(object()), b"", b"\xc1",
    msgspec.msgpack.encode(["large", "bits8", [2]]), msgspec.msgpack.encode({"a": [1, 2]}),
)  # fmt: skip

numbers = st.one_of(
    st.integers(-2, 9), st.sampled_from((2**31, 2**53, 2**62, 2**62 + 1, 2**63 - 1, -(2**63)))
)


def of_type(kind):
    """Values of a type of msgspec's, mostly within its bounds."""
    if isinstance(kind, inspect.StructType):
        return st.builds(
            kind.cls, **{one.name: of_type(one.type) for one in kind.fields if one.required},
            **{
                one.name: st.one_of(st.just(_default(one)), of_type(one.type))
                for one in kind.fields
                if not one.required
            },
        )  # fmt: skip
    if isinstance(kind, inspect.EnumType):
        return st.sampled_from([*kind.cls])
    if isinstance(kind, inspect.UnionType):
        return st.one_of(*map(of_type, kind.types))
    if isinstance(kind, inspect.ListType):
        return st.lists(of_type(kind.item_type), max_size=4)
    if isinstance(kind, inspect.TupleType):
        return st.tuples(*map(of_type, kind.item_types))
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(of_type(kind.key_type), of_type(kind.value_type), max_size=3)
    return {
        inspect.IntType: numbers,
        inspect.StrType: st.sampled_from(WORDS),
        inspect.BytesType: st.sampled_from(VALUES),
        inspect.BoolType: st.booleans(),
        inspect.FloatType: st.floats(),
        inspect.NoneType: st.none(),
    }[type(kind)]


def _default(field):
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


#: Every message that a process may send.
messages = st.one_of(*map(of_type, inspect.type_info(FromRank).types))


SIGNATURES = of_type(inspect.type_info(list[events.Signature]))
SHAPES = of_type(inspect.type_info(list[events.Shape]))


@st.composite
def records(draw, size):
    """What a rank might report: mostly in order, and about what there is."""
    said, begun = [Entered(draw(numbers))], 0
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(("post", "post", "post", "block", "done", "group", "any")))
        op = draw(st.integers(max(begun - 2, 0), max(begun - 1, 0)))
        if kind == "post":
            what = draw(st.sampled_from(("send", "recv", "all_reduce", "all_gather", "new_group")))
            peer = draw(st.integers(-1, size - 1))
            group = draw(st.sampled_from((WORLD, WORLD, "pair")))
            count = draw(st.sampled_from((0, 1, 3, 10**6, 2**62)))
            signatures, shapes = draw(SIGNATURES), draw(SHAPES)
            post = Posted(
                op=begun,
                kind=what,
                peer=peer if what in ("send", "recv") else ANY,
                tag=0,
                group=group,
                count=count,
                nbytes=count,
                dtype=draw(st.sampled_from(("float32", "int64"))),
                detail="SUM",
                blocking=draw(st.booleans()),
                deferred=draw(st.booleans()),
                file="answer.py",
                line=draw(st.integers(0, 9)),
                time=draw(numbers),
                buffer=draw(st.integers(0, 3)),
                offset=draw(st.integers(0, 3)),
                signatures=signatures[:1],
                thread=draw(st.integers(0, 1)),
                limit=draw(st.integers(0, 1)),
                by_torch=draw(st.booleans()),
                shapes=shapes[:1],
            )
            said.append(post)
            begun += 1
        elif kind == "block":
            said.append(Blocked(op, "answer.py", 3, 5))
        elif kind == "done":
            said.append(Completed(op, 6))
        elif kind == "group":
            members = draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size))
            said.append(Grouped("pair", members))
        else:
            said.append(draw(messages))
    return said


def answer():
    return 1


PROGRAM = Submission.from_function(answer, "answer").program

#: An outline of an answer, which hints look at.
SOURCE = outline(["def answer(x):\n    return x\n"], ["answer"])["answer"]


def judged(exercise, launcher):
    """The verdict on a submission whose processes are scripted."""
    submission = Submission(
        "answer.py", PROGRAM, frozenset({exercise.name}), outlines={exercise.name: SOURCE}
    )
    try:
        return Judge(launcher, Settings(SEED, (size_of(exercise),), seconds=0.05)).judge(
            exercise, submission
        )
    finally:
        launcher.close()


SEED = 1


def size_of(exercise):
    return exercise.world_sizes[min(1, len(exercise.world_sizes) - 1)]


class Ranks:
    """Ranks that report anything, and then return what is right, or say anything, or nothing.

    The processes are threads; everything is drawn beforehand, in the test's own.
    """

    def __init__(self, data, exercise):
        self._exercise, size = exercise, size_of(exercise)
        self._cases = exercise.cases(SEED, size)
        ends = st.sampled_from(("right", "right", "any", "none"))
        self._drawn = [
            (
                data.draw(records(size)),
                data.draw(ends),
                data.draw(messages),
                data.draw(st.booleans()),
            )
            for _ in range(size)
        ]
        self.frames = sum(len(drawn[0]) + 1 for drawn in self._drawn)

    def call(self, frame, process):
        said, end, last, damaged = self._drawn[process.rank]
        data = b"".join(part for one in said for part in framed(one))
        process.send(data[:-3] + b"\xff\xff\xff" if damaged and end == "none" else data)
        if end == "right":
            case = self._cases[min(process.calls, len(self._cases) - 1)]
            process.say(Left(False, 10), self._right(case, process.rank))
            process.calls += 1
            return
        if end == "any":
            process.say(last)
        process.close()

    def _right(self, case, rank):
        exercise, arguments = self._exercise, list(case.arguments(rank))
        expected = list(exercise.values.expected(case))[rank]
        if exercise.values.result is None:
            return Returned(pack(expected), pack(tuple(arguments)), [], 11)
        arguments[list(case.columns).index(exercise.values.result)] = expected
        return Returned(pack(None), pack(tuple(arguments)), [], 11)


#: How many examples there are of each kind; `FRAMES=10000`, with `--timeout 0`, looks longer.
few = settings(
    max_examples=int(os.environ.get("FRAMES", "25")), suppress_health_check=list(HealthCheck)
)


@few
@given(st.sampled_from(NAMES), st.data())
def test_no_frame_in_a_call_makes_an_error(name, data):
    ranks = Ranks(data, CATALOGUE[name])
    verdict = judged(CATALOGUE[name], Scripted(RunCall=ranks.call))
    assert verdict.status in (Status.FAILED, Status.PASSED)


@few
@given(st.lists(messages, min_size=1, max_size=4), st.booleans())
def test_no_frame_before_a_call_makes_an_error(said, loads):
    def load(frame, process):
        process.say(*said)
        if loads:
            process.say(Ready())
        else:
            process.close()

    assert judged(CATALOGUE["barrier"], Scripted(Load=load)).status is Status.FAILED


@few
@given(
    st.lists(of_type(inspect.type_info(Answered)), max_size=3),
    of_type(inspect.type_info(Simulated)) | of_type(inspect.type_info(Simulated)) | messages,
    st.sampled_from((0, 10)),
)
def test_no_frame_of_simulated_ranks_makes_an_error(answers, last, recorded):
    def run(frame, process):
        process.say(*answers, last)
        process.close()

    launcher = Scripted(Simulate=run)
    job = Job("answer", ((1,), (2,)), seconds=5, allowed=None)
    found = simulate(launcher, PROGRAM, job, Flat(), recorded=recorded, counted=True)
    launcher.close()
    assert found.failure is not None or found.results or not answers


@few
@given(of_type(inspect.type_info(FileDefinitions)))
def test_no_frame_of_a_parser_makes_an_error(said):
    def read(frame, process):
        process.say(Performed(msgspec.msgpack.encode(said)))
        process.close()

    launcher = Scripted(Perform=read)
    try:
        submission = parse(launcher, b"x = 1", "answer.py", CATALOGUE)
    except UnreadableFile:
        return
    finally:
        launcher.close()
    for name in plan([submission], CATALOGUE).sources:
        assert judged(CATALOGUE[name], Scripted()).status is Status.FAILED
