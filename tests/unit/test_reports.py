"""Verdicts as text, HTML and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.exercise.help import Help
from grader.exercise.verdict import (
    Bound,
    CaseVerdict,
    ExerciseVerdict,
    Grade,
    RankRow,
    Status,
    SubmissionVerdict,
)
from grader.report.html import exercise_html, points_html
from grader.report.json import to_json
from grader.report.looks import THEME_STYLE, Look
from grader.report.summary import headline, outcomes
from grader.report.text import exercise_report, submission_report
from headcount.core.verdict import Diagnosis, Failure, Site, SourceLine, Traffic, Wait
from headcount.report import failure_report, plain, visible

NASTY = "<script>alert(1)</script> [bold]x[/bold] & \x1b[31m"

PASSED = ExerciseVerdict(
    "broadcast", "02_broadcast", Status.PASSED, 1.0, 1.0, seconds=0.21, seed=7,
    cases=(
        CaseVerdict("float32 7", 4, Status.PASSED, traffic=Traffic(3, 84, 84, 3)),
        CaseVerdict("messages", 4, Status.PASSED, bounds=(Bound("messages", 3, "=", 3),)),
    ),
)  # fmt: skip

FAILED = ExerciseVerdict(
    "gather", "03_scatter_gather", Status.FAILED, 0.25, 1.0, Diagnosis.WRONG_VALUE,
    f"4 ranks, float32 7: rank 2: {NASTY}", f"Try this: {NASTY}", 0.1, 7,
    cases=(
        CaseVerdict("first", 1, Status.PASSED),
        CaseVerdict(
            "second", 4, Status.FAILED, Diagnosis.WRONG_VALUE, "rank 2: no", 2,
            Site("cell 3", 14), Traffic(3, 84, 84, 3),
            by_rank=(RankRow(0, "[1.0]", "[1.0]", True), RankRow(1, "[2.0]", NASTY, False)),
            detail=(f"rank 0 waits {NASTY}",),
            output=("hello\n" * 20, NASTY),
        ),
    ),
)  # fmt: skip

HUNG = ExerciseVerdict(
    "pass_on", "01_point_to_point", Status.FAILED, 0.0, 1.0, Diagnosis.DEADLOCK,
    "2 ranks: rank 0 waits", "Receive first.", 0.1, 7,
    cases=(
        CaseVerdict(
            "first", 2, Status.FAILED, Diagnosis.DEADLOCK, "rank 0 waits", 0, Site("cell 3", 14),
            Traffic(),
            waits=tuple(Wait(rank, (1 - rank,), NASTY, Site(NASTY, 14), "send") for rank in (0, 1)),
            cycle=(0, 1),
        ),
    ),
)  # fmt: skip

STATES = {
    "passed": PASSED,
    "failed": FAILED,
    "hung": HUNG,
    "skipped": ExerciseVerdict("a", "c", Status.SKIPPED, 0, 1, message="needs at least 2 ranks"),
    "error": ExerciseVerdict("a", "c", Status.ERROR, 0, 1, message="the grader failed: x"),
    "empty": ExerciseVerdict(
        "a", "c", Status.FAILED, 0, 1, Diagnosis.NOT_ATTEMPTED, "not written yet", "begin"
    ),
    "missing": ExerciseVerdict(
        "a", "c", Status.FAILED, 0, 1, Diagnosis.MISSING, "f.py does not define a", "define it"
    ),
}


def test_a_passing_verdict_as_text():
    assert plain(exercise_report(PASSED)).splitlines() == [
        f"✓ broadcast passed: 2 cases on 4 ranks{' ' * 39}1/1",
        "  On 4 ranks: 3 messages, exactly what is needed",
    ]


@pytest.mark.parametrize(
    "bounds, text",
    [
        ((("≤", 5), ("≥", 3)), "4 messages (at most 5 and at least 3)"),
        ((("≤", 5), ("≥", 0)), "4 messages (at most 5)"),
        ((("≤", 4), ("≥", 4)), "4 messages, exactly what is needed"),
        ((("≥", 0),), "4 messages (at least 0)"),
    ],
)
def test_bounds_on_one_number_are_said_together(bounds, text):
    cases = [
        CaseVerdict("messages", 4, Status.PASSED, bounds=(Bound("messages", 4, relation, asked),))
        for relation, asked in bounds
    ]
    verdict = ExerciseVerdict("a", "c", Status.PASSED, 1, 1, cases=tuple(cases))
    assert plain(exercise_report(verdict)).splitlines()[1].endswith(f": {text}")


def test_a_pass_without_a_message_says_on_how_many_ranks_it_has_run():
    cases = [
        CaseVerdict("messages", n, Status.PASSED, bounds=(Bound("messages", 0, "=", 0),))
        for n in (1, 8)
    ]
    verdict = ExerciseVerdict("a", "c", Status.PASSED, 1, 1, cases=tuple(cases))
    said = "It has run on 8 ranks at once, and without a message: none is needed."
    assert plain(exercise_report(verdict)).splitlines()[1].strip() == said
    assert f"<div>{said}</div>" in exercise_html(verdict)


def test_one_of_a_kind_is_singular():
    assert Bound("rounds", 1, "=", 1).counted == "1 round"
    assert Bound("bytes sent by one rank", 1, "=", 1).counted == "1 byte sent by one rank"
    assert Bound("messages", 1024, "=", 1).counted == "1,024 messages"


def test_a_remark_on_a_passing_verdict_is_in_all_reports():
    verdict = replace(PASSED, message="right, but fragile")
    assert "remark: right, but fragile" in plain(exercise_report(verdict))
    assert "<strong>Remark:</strong> right, but fragile" in exercise_html(verdict)
    fields = json.loads(to_json(SubmissionVerdict("a.py", 7, (verdict,))))
    assert fields["exercises"][0]["message"] == "right, but fragile"


def test_a_failing_verdict_as_text():
    text = plain(exercise_report(FAILED))
    assert "± gather wrong result: 1 of 2 cases failed" in text
    assert "wrong_value" not in text
    assert "0.25/1" in text
    assert "in general: Try this:" in text
    assert "[rank 0] … 12 more lines" in text
    assert text.count("[rank 0] hello") == 8


@pytest.mark.parametrize("name", STATES)
def test_text_fits_a_terminal(name):
    lines = plain(exercise_report(STATES[name])).splitlines()
    assert lines
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", STATES)
def test_html_says_what_the_text_says(name):
    verdict = STATES[name]
    html = exercise_html(verdict)
    parser = _Text()
    # the one style is that of the graph of a deadlock
    parser.feed(html.replace(THEME_STYLE, "", 1))
    said = " ".join(parser.text.split())
    assert verdict.name in said
    if verdict.status is Status.FAILED:
        assert " ".join(visible(verdict.message).split()) in said
        hinted = " ".join(visible(verdict.hint).split()) in said
        assert hinted == (verdict.diagnosis is not Diagnosis.NOT_ATTEMPTED)
    assert parser.open == []


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.text = ""
        self.open = []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "style", "bold")
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_an_untouched_exercise_is_neither_a_failure_nor_a_hint():
    verdict = STATES["empty"]
    assert plain(exercise_report(verdict)).splitlines() == [f"○ a not written yet{' ' * 58}0/1"]
    html = exercise_html(verdict)
    assert "✗" not in html
    assert "error-color" not in html
    assert "begin" not in html


WRONG = replace(
    FAILED,
    message="2 ranks, 3 int64 numbers: rank 0: element [1] of x should be 11, but is 1",
    cases=(
        CaseVerdict(
            "3 int64 numbers", 2, Status.FAILED, Diagnosis.WRONG_VALUE,
            "rank 0: element [1] of x should be 11, but is 1", 0,
            by_rank=(
                RankRow(0, "[10 11 12]", "[10  1 12]", False, ((4, 6),), "element 1"),
                RankRow(1, "[10 11 12]", "[10 11 12]", True),
            ),
            shown_by_rank="rank 0: element [1] of x should be 11, but is 1",
            frames=(SourceLine(Site("c", 5), text="dist.recv(x, 0)", role="the last receive"),),
        ),
        CaseVerdict("later", 2, Status.FAILED, message="not run: no", judged=False),
        CaseVerdict("messages", 2, Status.PASSED, bounds=(Bound("messages", 1, "=", 1),)),
    ),
)  # fmt: skip


def test_ranks_are_compared_in_rows_with_the_line_and_all_cases():
    assert plain(exercise_report(WRONG)).splitlines()[1:7] == [
        "  On 2 ranks, 3 int64 numbers:",
        "      rank 0   [10  1 12]   should be [10 11 12]   ← element 1",
        "      rank 1   [10 11 12]                          ✓",
        "      line 5 (the last receive):  dist.recv(x, 0)",
        f"  in general: Try this: {NASTY}".replace("\x1b", "\\x1b"),
        "  2 ranks ✗·●",
    ]


def test_wide_rows_stand_one_below_the_other():
    long = "[" + "1234567 " * 4 + "]"
    row = replace(WRONG.cases[0].by_rank[0], expected=long, actual=long, wrong=())
    case = replace(WRONG.cases[0], by_rank=(row,))
    lines = plain(exercise_report(replace(WRONG, cases=(case,)))).splitlines()
    assert lines[2:4] == [f"      rank 0      {long}   ← element 1", f"      should be   {long}"]


def test_what_is_wrong_is_marked_by_more_than_colour():
    html = exercise_html(WRONG)
    assert re.search(
        r'<b style="[^"]*underline">&nbsp;?1</b>|<b style="[^"]*underline"> 1</b>', html
    )
    assert "2 ranks: 1 of 3 passed, 1 not run" in html
    assert "All 3 cases" in html
    assert "not run: no" in html
    assert "messages: 1 (exactly 1)" in html
    assert "Cases:   ● right   ✗ failed   · not run" in html
    assert '<span title="3 int64 numbers: wrong result">✗</span>' in html
    assert '<span title="later: not run">·</span>' in html


def test_cases_that_were_not_run_are_not_counted_as_failed():
    assert headline(WRONG) == "wrong result: 1 of 2 cases that ran failed"
    assert headline(FAILED) == "wrong result: 1 of 2 cases failed"
    alone = replace(WRONG, cases=WRONG.cases[:2])
    assert headline(alone) == "wrong result: the only case that ran failed"


def test_right_values_that_miss_the_point_are_not_said_to_be_wrong():
    costly = CaseVerdict(
        "rounds", 2, Status.FAILED, Diagnosis.TOO_MANY_MESSAGES, is_limit=True, misses_point=True
    )
    verdict = replace(
        WRONG,
        diagnosis=Diagnosis.TOO_MANY_MESSAGES,
        score=0.5,
        cases=(CaseVerdict("a", 2, Status.PASSED), costly),
    )
    assert headline(verdict) == "right, but misses the point: too many messages"


def test_what_is_said_of_several_cases_is_said_once():
    cases = [
        CaseVerdict(name, n, Status.FAILED, Diagnosis.EXCEPTION, "no", simulated=n > 4)
        for n in (1, 2, 3, 67)
        for name in ("first", "second")
        if (n, name) != (3, "first")
    ]
    passed = CaseVerdict("first", 3, Status.PASSED)
    found = outcomes(replace(WRONG, cases=(passed, *cases)))
    assert [(one.look, one.words, one.where) for one in found] == [
        (
            Look.FAILED,
            "exception: no",
            (
                "on 1 and 2 ranks: first; second",
                "on 3 ranks: second",
                "on 67 simulated ranks: first; second",
            ),
        ),
        (Look.PASSED, "right", ("on 3 ranks: first",)),
    ]
    assert exercise_html(replace(WRONG, cases=tuple(cases))).count("exception: no") == 1


def test_other_faults_and_their_price_come_after_what_is_to_be_done_first():
    more = "It also fails on 3 ranks: x"
    verdict = replace(WRONG, message=f"{WRONG.message}\n{more}")
    for text in (plain(exercise_report(verdict)), exercise_html(verdict)):
        assert text.index("Try this") < text.index(more)
        assert text.count(more) == 1


HELP = Help(("Who has it?", "Call dist.send(x, (r + 1) % n).", "All of it:\n\n    return x_out"))


class _Details(HTMLParser):
    """What is folded away: how deep, its summary, and its text."""

    def __init__(self, html):
        super().__init__()
        self.found, self._open, self._summary = [], [], False
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        if tag == "details":
            assert ("open", None) not in attributes
            self._open.append(len(self.found))
            self.found.append([len(self._open), "", ""])
        self._summary = tag == "summary"

    def handle_endtag(self, tag):
        if tag == "details":
            self._open.pop()
        self._summary = False

    def handle_data(self, data):
        if self._open:
            self.found[self._open[-1]][1 if self._summary else 2] += data


def test_every_hint_is_folded_away_inside_the_one_before():
    *hints, cases = _Details(exercise_html(WRONG, help=HELP)).found
    assert [(depth, name, text.strip()) for depth, name, text in hints] == [
        (1, "Hint 1 of 2", "Who has it?"),
        (2, "Hint 2 of 2", "Call dist.send(x, (r + 1) % n)."),
        (3, "Show the answer", "All of it:return x_out"),
    ]
    assert cases[:2] == [1, "All 3 cases"]
    untouched = exercise_html(STATES["empty"], help=HELP)
    assert [name for _, name, _ in _Details(untouched).found] == [name for _, name, _ in hints]
    assert _Details(exercise_html(PASSED, help=HELP)).found == []


@pytest.mark.parametrize(
    ("grade", "label"),
    [(Grade.ESTABLISHED, "hint"), (Grade.SUPPORTED, "likely"), (Grade.OPEN, "in general")],
)
def test_what_a_program_proves_is_told_from_what_is_likely_and_from_advice(grade, label):
    verdict = replace(WRONG, hint="Receive first.", hint_grade=grade)
    assert f"{label}: Receive first." in plain(exercise_report(verdict))
    assert f"<strong>{label.capitalize()}:</strong> Receive first." in exercise_html(verdict)
    (fields,) = json.loads(to_json(SubmissionVerdict("a.py", 7, (verdict,))))["exercises"]
    assert fields["hint_grade"] == grade.value


def test_a_hint_that_the_verdict_gives_is_not_given_again():
    html = exercise_html(replace(WRONG, hint=HELP.hints[0]), help=HELP)
    assert html.count("Who has it?") == 1
    assert [name for _, name, _ in _Details(html).found[:2]] == ["Hint 2 of 2", "Show the answer"]
    plainest = Help(("One.", "Two."))
    names = [name for _, name, _ in _Details(exercise_html(WRONG, help=plainest)).found[:2]]
    assert names == ["Hint 1 of 2", "Hint 2 of 2"]


@pytest.mark.parametrize(
    "text, code",
    [
        ("dist.get_rank() is this rank", ["dist.get_rank()"]),
        ("call dist.send(x, (r + 1) % n) first", ["dist.send(x, (r + 1) % n)"]),
        ("leave `x < y` to torch.empty_like.", ["x &lt; y", "torch.empty_like"]),
        ("n is the world_size (or two)", ["world_size"]),
        ("rank r, e.g. 1, of n (n − 1) messages", []),
    ],
)
def test_code_in_a_hint_is_set_as_code(text, code):
    html = exercise_html(replace(WRONG, hint=text))
    found = re.search(r"<strong>In general:</strong> (.*)</div>", html)[1]
    assert re.findall("<code>(.*?)</code>", found) == code


def test_a_picture_of_where_it_goes_wrong_is_shown_below_what_ranks_hold():
    html = exercise_html(WRONG, strip="<img alt='strip' />")
    assert html.index("should be") < html.index("<img alt='strip' />") < html.index("In general:")
    assert "<img" not in exercise_html(WRONG)


def test_what_has_been_shown_before_is_its_points_in_a_line():
    html = points_html(FAILED)
    assert "<strong>gather</strong> 0.25 of 1 point</div>" in html
    assert len(html.splitlines()) == 1


@pytest.mark.parametrize("diagnosis", Diagnosis)
def test_a_diagnosis_is_said_in_words(diagnosis):
    assert diagnosis.words
    assert "_" not in diagnosis.words
    verdict = replace(WRONG, diagnosis=diagnosis)
    if diagnosis is not Diagnosis.NOT_ATTEMPTED:
        for text in (plain(exercise_report(verdict)), exercise_html(verdict)):
            assert diagnosis.words in text


def test_what_a_student_wrote_is_no_markup():
    assert "<script>" not in exercise_html(FAILED)
    assert "[bold]x[/bold]" in plain(exercise_report(FAILED))
    assert "\x1b" not in plain(exercise_report(FAILED))
    assert "\x1b" not in exercise_html(FAILED)


def test_a_failure_as_text():
    failure = Failure(Diagnosis.DEADLOCK, "rank 0 waits", 0, None, ("one", "two"))
    assert plain(failure_report(failure)) == "✗ deadlock: rank 0 waits\n  · one\n  · two"


def test_a_submission_as_text():
    text = plain(submission_report(SubmissionVerdict("a.py", 7, (PASSED, FAILED))))
    assert "02_broadcast" in text
    assert text.endswith("1.25 of 2 points   (seed 7)")


def test_json_has_the_promised_fields_and_no_others():
    found = json.loads(to_json(SubmissionVerdict("a.py", 7, (PASSED, FAILED, HUNG))))
    assert list(found) == [
        "schema_version", "grader_version", "submission", "seed", "backend",
        "score", "max_score", "exercises",
    ]  # fmt: skip
    assert (found["score"], found["max_score"], found["seed"]) == (1.25, 3.0, 7)
    exercise = found["exercises"][1]
    assert list(exercise) == [
        "name", "chapter", "status", "score", "max_score", "diagnosis", "message", "hint",
        "hint_grade", "seconds", "cases", "words",
    ]  # fmt: skip
    assert exercise["cases"][1] == {
        "name": "second",
        "world_size": 4,
        "status": "failed",
        "diagnosis": "wrong_value",
        "message": "rank 2: no",
        "rank": 2,
        "line": 14,
        "traffic": {
            "messages": 3,
            "bytes": 84,
            "max_sent": 84,
            "rounds": 3,
            "virtual_seconds": None,
        },
        "words": "wrong result",
    }
    assert found["exercises"][0]["diagnosis"] is None
    simulated = CaseVerdict("rounds", 64, Status.PASSED, simulated=True)
    told = json.loads(to_json(SubmissionVerdict("a", 7, (replace(PASSED, cases=(simulated,)),))))
    assert told["exercises"][0]["cases"][0]["name"] == "rounds (simulated)"
    # the picture of a deadlock is for notebooks
    assert list(found["exercises"][2]["cases"][0]) == list(exercise["cases"][1])


def test_skipped_exercises_do_not_count():
    verdict = SubmissionVerdict("a", 1, (PASSED, STATES["skipped"]))
    assert (verdict.score, verdict.max_score, verdict.passed) == (1.0, 1.0, True)
    assert not SubmissionVerdict("a", 1, (PASSED, STATES["error"])).passed


def test_json_survives_what_has_no_utf8():
    verdict = ExerciseVerdict("a", "c", Status.FAILED, 0, 1, Diagnosis.EXCEPTION, "\ud800")
    assert json.loads(to_json(SubmissionVerdict("a.py", 1, (verdict,))))
