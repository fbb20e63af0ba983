"""The benchmark of hung and mismatched ranks: its programs, its scores, its command line."""

from __future__ import annotations

import json

import pytest

from benchmarks.hangs.__main__ import main
from benchmarks.hangs.catalogue import CLASSES, every_pair, pairs_named
from benchmarks.hangs.declare import Pair, Program, both
from benchmarks.hangs.measure import Verdict, judge, score
from benchmarks.hangs.plain import LEVELS, Outcome, hear
from headcount import simulate
from headcount.core.verdict import Diagnosis

WAYS = ("run", "check", "simulate")
PAIRS = every_pair()


def named(name: str) -> Program:
    return next(program for program in both(PAIRS) if program.name == name)


def verdict(program: Program, word: str, line: int | None = None) -> Verdict:
    """What a verdict would be, without a run."""
    return Verdict(program, word, line, frozenset({line} - {None}), "", 0.1)


def test_every_wrong_program_has_a_right_twin_a_word_and_marked_lines():
    for pair in PAIRS:
        assert pair.right is not None, pair.wrong.name
        assert isinstance(pair.wrong.word, Diagnosis)
        assert pair.wrong.lines, f"{pair.wrong.name} marks no line"
        assert not pair.right.lines, f"{pair.right.name} is right and marks a line"
        assert 2 <= pair.wrong.ranks <= 8


def test_names_are_used_once_and_every_class_has_programs():
    names = [program.name for program in both(PAIRS)]
    assert len(set(names)) == len(names) >= 100
    assert {pair.wrong.error_class.replace(" ", "_") for pair in PAIRS} == set(CLASSES)


def test_a_class_or_a_program_can_be_asked_for():
    assert [pair.wrong.name for pair in pairs_named(["ring_with_two_buffers"])] == [
        "ring_with_one_buffer"
    ]
    assert {pair.wrong.error_class for pair in pairs_named(["futures", "groups"])} == {
        "futures",
        "groups",
    }
    with pytest.raises(ValueError, match="no class and no program is called ring_with_no"):
        pairs_named(["ring_with_no_buffer"])


def test_a_wrong_program_without_a_twin_is_refused():
    alone = Pair(named("both_receive_first"))
    with pytest.raises(ValueError, match="both_receive_first has no right twin"):
        both([alone])


@pytest.mark.parametrize(
    "name",
    ["barrier_indented_too_far", "receives_more_than_is_sent", "ring_with_one_buffer"],
)
def test_a_wrong_program_is_found_with_its_word_and_line(name):
    found = judge(named(name))
    assert found.misses == []
    assert found.found
    assert found.right_word
    assert found.right_line
    assert found.seconds > 0


@pytest.mark.parametrize("name", ["barrier_for_everybody", "ring_with_two_buffers"])
def test_a_right_program_passes(name):
    assert judge(named(name)).misses == []


def simulated(program: Program) -> str:
    """Return what a simulation says of a program."""
    done = simulate(program.function, program.ranks, seconds=3, may_fail=True)
    if done.failure is not None:
        return str(done.failure.diagnosis)
    return "" if program.word or list(done) == list(program.gives) else "wrong_value"


def test_a_deviation_is_stated_only_where_there_is_one():
    stated = {(name, way) for name in CLASSES for way in WAYS if getattr(CLASSES[name], way)}
    assert stated == {
        ("threads", "simulate"),
        ("torch_internals", "simulate"),
        ("public_issues", "simulate"),
    }
    program = named("both_threads_receive")
    assert simulated(program) in CLASSES["threads"].simulate.words != (str(program.word),)


def test_a_right_program_that_returns_something_else_is_a_false_alarm():
    twin = named("barrier_for_everybody")
    other = Program(twin.function, twin.ranks, gives=[1, 1, 1])
    found = judge(other)
    assert found.word == "wrong_value"
    assert found.message == "returns [1, 0, 0], expected [1, 1, 1]"
    assert found.misses == ["a false alarm: wrong_value"]


def test_what_is_missed_lowers_each_share_on_its_own():
    wrong, right = named("both_receive_first"), named("one_receives_first")
    (line,) = wrong.lines
    perfect = score([verdict(wrong, "deadlock", line), verdict(right, "")])
    assert (perfect.recall, perfect.precision, perfect.word, perfect.line) == (1, 1, 1, 1)
    assert perfect.missed_goals == []

    missed = score([verdict(wrong, "deadlock", line), verdict(wrong, "")])
    assert (missed.recall, missed.precision, missed.word, missed.line) == (0.5, 1, 0.5, 0.5)
    alarm = score([verdict(wrong, "deadlock", line), verdict(right, "exception")])
    assert (alarm.recall, alarm.precision, alarm.word, alarm.line) == (1, 0.5, 1, 1)
    other_word = score([verdict(wrong, "timeout", line), verdict(right, "")])
    assert (other_word.recall, other_word.word, other_word.line) == (1, 0, 1)
    other_line = score([verdict(wrong, "deadlock", line + 1), verdict(right, "")])
    assert (other_line.recall, other_line.word, other_line.line) == (1, 1, 0)
    assert other_line.missed_goals == ["line 0.000 < 0.98"]


@pytest.mark.exhaustive
def test_the_command_prints_one_object_and_says_by_its_status_that_all_is_met(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.hangs.measure.SECONDS", 60)  # not a matter of time
    assert main(["--json", "--repeat", "2", "both_receive_first"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missed_goals"] == []
    assert found["total"]["recall"] == found["classes"]["deadlock"]["precision"] == 1
    programs = [(p["name"], p["got"], p["misses"]) for p in found["programs"]]
    once = [("both_receive_first", "deadlock", []), ("one_receives_first", None, [])]
    assert programs == 2 * once


def test_the_command_lists_what_is_missed(capsys, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.hangs.__main__.judge",
        lambda program: verdict(program, "timeout" if program.word else "", 1),
    )
    assert main(["both_receive_first"]) == 1
    shown = capsys.readouterr().out
    assert "✗ deadlock: both_receive_first: says timeout, expected deadlock" in shown
    assert "names line 1 first, expected" in shown
    assert "missed: word 0.000 < 0.98, line 0.000 < 0.98" in shown


def test_the_command_refuses_what_there_is_not(capsys):
    assert main(["no_such_program"]) == 2
    assert "no class and no program is called no_such_program" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_plain_gloo_hangs_where_torchs_own_checks_name_the_mismatch():
    """The two levels of torch's own checks, on real processes unwatched."""
    pairs = pairs_named(["one_rank_gathers_while_others_reduce"])
    heard = hear(pairs, limit=5.0, servers=1)
    wrong, right = (heard[program.name] for program in both(pairs))
    assert wrong.outcomes == {"OFF": Outcome.HUNG, "DETAIL": Outcome.NAMED}
    assert "mismatch between collectives" in wrong.messages["DETAIL"]
    assert right.outcomes == dict.fromkeys(LEVELS, Outcome.SILENT)
