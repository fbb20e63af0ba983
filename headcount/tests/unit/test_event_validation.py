"""A rank says what it does; what no recorder of ours would say is not believed."""

from __future__ import annotations

import msgspec
import pytest

from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Failed,
    Grouped,
    Handling,
    Held,
    Inspected,
    Marked,
    Paused,
    Polled,
    Posted,
    Same,
    SameValue,
    Seen,
    Signature,
    Violated,
)
from headcount.core.verdict import Diagnosis
from headcount.core.wire import BrokenFrame, FrameReader, Returned, TooManyMessages, framed
from headcount.launch import event_validation
from headcount.launch.event_validation import EventValidator
from headcount.trace.message_matcher import MessageMatcher

SEND = Posted(0, "send", 1, 0, WORLD, 4, 16, "float32", "", True, False, "answer.py", 3, 10)
SUM = msgspec.structs.replace(SEND, kind="all_reduce", peer=ANY, detail="SUM")


def posted(**changed):
    return msgspec.structs.replace(SEND, **changed)


@pytest.fixture
def matcher():
    return MessageMatcher(2)


@pytest.fixture
def scrutiny_of_two(matcher):
    return EventValidator(matcher, frozenset({"all_reduce"}), subgroups=False, watched=False)


@pytest.mark.parametrize(
    "event",
    [
        SEND,
        SUM,
        posted(kind="recv", peer=ANY),
        Marked("gradient ready", 10),
        Marked("m" * 1024, 10),
        Grouped("pair", [0, 1]),
        Same([0, 1], "loss", [SameValue("", 2**64 - 1, "0.1")], "answer.py", 3),
        Violated(Diagnosis.BUFFER_RACE.value, "changed while in flight", "answer.py", 3, 10),
    ],
)
def test_what_a_recorder_says_passes(scrutiny_of_two, event):
    scrutiny_of_two.validate(0, event)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (posted(op=1), "operation 1 where operation 0 comes next"),
        (posted(kind="gossip"), "no kind that there is"),
        (posted(group="elsewhere"), "in a group that it is not in"),
        (posted(peer=2), "with rank 2, which is not in the group"),
        (posted(peer=ANY), "with rank -1, which is not in the group"),
        (posted(peer=0), "a message to itself"),
        (posted(kind="new_group", peer=1), "a call of new_group, which the recorder refuses"),
        (posted(kind="init_process_group", peer=ANY), "a call of init_process_group, which the"),
        (posted(kind="broadcast", peer=1), "a call of broadcast, which the recorder refuses"),
        (posted(signatures=[Signature("int8", [1, 2, 3], [])]), "for ranks that are not in"),
        (Blocked(0, "answer.py", 3, 10), "operation 0, which it never began"),
        (Completed(0, 10), "operation 0, which it never began"),
        (Polled(99, 10), "operation 99, which it never began"),
        (Failed(-1, 10), "operation -1, which it never began"),
        (Grouped("pair", [1]), "a group that it is not in"),
        (Grouped("pair", [0, 0]), "a group that it is not in"),
        (Grouped("pair", [0, 2]), "ranks that are not there"),
        (Same([1], "loss", [], "answer.py", 3), "should share which are not there"),
        (Same([0, 2], "loss", [], "answer.py", 3), "should share which are not there"),
        (Violated("deadlock", "", "answer.py", 3, 10), "a fault that no recorder finds"),
        (Handling(-1, "ValueError: bad", "answer.py", 3), "in another operation than the last"),
        (Handling(0, "ValueError: bad", "answer.py", 3), "in another operation than the last"),
        (Paused(10), "a pause, which the case does not know"),
        (Held("argument", 0, 0, 1), "nobody has asked for"),
        (Seen(0, [1.0], 10), "nobody has asked for"),
    ],
)
def test_what_no_recorder_says_is_refused(scrutiny_of_two, event, message):
    with pytest.raises(BrokenFrame, match=message):
        scrutiny_of_two.validate(0, event)


@pytest.mark.parametrize(
    "event",
    [
        posted(nbytes=-1),
        posted(count=-1),
        posted(line=-1),
        posted(time=-1),
        posted(file="f" * 1025),
        posted(dtype="f" * 1025),
        posted(detail="f" * 1025),
        posted(signatures=[Signature("int8", [], [-1])]),
        posted(signatures=[Signature("d" * 1025, [], [])]),
        posted(shapes=[[1] * 65]),
        Blocked(0, "f" * 1025, 3, 10),
        Grouped("p" * 1025, [0, 1]),
        Grouped("pair", [0] * ((1 << 16) + 1)),
        Inspected(False, [], [[]] * ((1 << 17) + 1)),
        Violated(Diagnosis.BUFFER_RACE.value, "m" * 2001, "answer.py", 3, 10),
        Marked("m" * 1025, 10),
        Same([0, 1], "n" * 1025, [], "answer.py", 3),
        Same([0, 1], "", [SameValue("k" * 1025, 0, "")], "answer.py", 3),
        Same([0, 1], "", [SameValue("", 0, "t" * 1025)], "answer.py", 3),
    ],
    ids=lambda event: type(event).__name__,
)
def test_every_field_has_bounds(event):
    with pytest.raises(BrokenFrame, match="a frame that is no message: Expected"):
        list(FrameReader().feed(b"".join(framed(event))))


def test_news_of_the_past_are_of_operations_that_were_begun(scrutiny_of_two, matcher):
    scrutiny_of_two.validate(0, SEND)
    matcher.take(0, SEND)
    scrutiny_of_two.validate(0, Completed(0, 20))
    with pytest.raises(BrokenFrame, match="operation 0 where operation 1 comes next"):
        scrutiny_of_two.validate(0, SEND)


def test_a_group_is_known_in_later_calls_as_its_rank_sees_it():
    views = [{}, {}]
    EventValidator(MessageMatcher(2), None, True, False, views).validate(0, Grouped("pair", [0, 1]))
    later = EventValidator(MessageMatcher(2), None, True, False, views)
    later.validate(0, posted(group="pair"))
    with pytest.raises(BrokenFrame, match="in a group that it is not in"):
        later.validate(1, posted(group="pair", peer=0))


@pytest.mark.parametrize(
    ("bound", "events", "error", "message"),
    [
        (
            "OPERATIONS",
            [SEND, posted(op=1), posted(op=2)],
            TooManyMessages,
            "more than 2 operations",
        ),
        ("EVENTS", [Marked("here", 10)] * 3, TooManyMessages, "more than 2 events"),
        ("GROUPS", [Grouped(name, [0]) for name in "abc"], BrokenFrame, "more than 2 groups"),
    ],
)
def test_there_is_an_end_to_what_a_rank_may_say(monkeypatch, bound, events, error, message):
    monkeypatch.setattr(event_validation, bound, 2)
    matcher = MessageMatcher(2)
    validate = EventValidator(matcher, None, subgroups=True, watched=False).validate
    for event in events[:-1]:
        validate(0, event)
        matcher.take(0, event)
    with pytest.raises(error, match=message):
        validate(0, events[-1])


def test_there_is_an_end_to_the_bytes_of_what_a_rank_says_before_its_answer():
    reader, mark = FrameReader(), b"".join(framed(Marked("m" * 1000, 10)))
    reader.budget = 3 * len(mark)
    assert len(list(reader.feed(mark * 3))) == 3
    answer = b"".join(framed(Returned(b"x" * 10_000, b"", [], 10)))
    assert len(list(reader.feed(answer))) == 1
    with pytest.raises(TooManyMessages, match="tells of more than 0 MB in one call"):
        list(reader.feed(mark))
