"""Answers whose verdict is known: their files, and the verdicts that they get."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from grader.api import catalogue
from grader.errors import DeclarationError
from grader.exercise.answers import RIGHT, read_answer, read_answers
from grader.exercise.verdict import ExerciseVerdict, Status
from headcount.core.verdict import Diagnosis
from tools import course

# Files. ---------------------------------------------------------------------------


def write(folder, text, name="answer.py"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def values_of(source, *names):
    namespace = {}
    exec(source, namespace)
    return tuple(namespace[name] for name in names)


def test_one_that_speaks_holds_hint_header_and_forms(tmp_path):
    write(tmp_path, "# or: STYLE = 2\nSTYLE = 1\n", "_common.py")
    path = write(
        tmp_path,
        '"""Take the\nother one."""\n# exercise: broadcast, tree_broadcast\n'
        "# diagnosis: wrong_value\n# or: A = 3; B = 4\nA = 1\nB = 2\n",
    )
    found = read_answer(path)
    assert found.speaks
    assert found.exercises == ("broadcast", "tree_broadcast")
    assert found.hint == "Take the other one."
    assert found.diagnosis is Diagnosis.WRONG_VALUE
    texts = [*found.sources, found.styles[0][0], found.styles[1][0]]
    values = [values_of(text, "STYLE", "A", "B") for text in texts]
    assert values == [(1, 1, 2), (1, 3, 4), (2, 1, 2), (2, 3, 4)]


def test_one_that_does_not_speak_stands_alone_and_names_words(tmp_path):
    write(tmp_path, "STYLE = 1\n", "_common.py")
    text = (
        "# exercise: broadcast\n# diagnosis: forbidden_call\n# hint: Leave it out\n# says: all\n"
        "# not: tree | ring\n# earns: 0.5\n# why it is wrong\nA = 1\n# or: A = 2\n"
    )
    found = read_answer(write(tmp_path, text))
    assert not found.speaks
    assert (found.sources, found.styles) == ((text,), ((),))
    assert (found.hint, found.says) == ("Leave it out", "all")
    assert (found.banned, found.earns) == (("tree", "ring"), 0.5)


def test_right_ones_lie_in_a_folder_of_their_own(tmp_path):
    right = write(tmp_path / RIGHT, '# exercise: twice\n# diagnosis: none\n"""Mine."""\n')
    wrong = write(tmp_path, "# exercise: twice\n# diagnosis: exception\n")
    assert [(one.path, one.diagnosis) for one in read_answers(tmp_path)] == [
        (wrong, Diagnosis.EXCEPTION)
    ]
    (found,) = read_answers(tmp_path / RIGHT)
    assert (found.path, found.diagnosis, found.speaks) == (right, None, False)
    assert read_answers(tmp_path / "no folder") == ()


def test_another_form_differs_in_one_assignment_and_in_no_line(tmp_path):
    """Where the same text stands elsewhere, it stays: in other names, functions and comments."""
    text = (
        "# exercise: twice\n# diagnosis: exception\n# or: STEP = 2\n"
        "LAST_STEP = 1\nSTEP = 1\nSIZES = [\n    1,\n]\n\n\n"
        "def twice(x):\n    STEP = 1  # STEP = 1\n    return STEP\n"
    )
    first, other = read_answer(write(tmp_path, text)).sources
    assert first == text
    assert other == text.replace("\nSTEP = 1\n", "\nSTEP = 2\n")
    first, other = read_answer(
        write(tmp_path, text.replace("STEP = 2", "SIZES = []; STEP = 3"))
    ).sources
    assert values_of(other, "LAST_STEP", "STEP", "SIZES") == (1, 3, [])
    assert len(other.splitlines()) == len(first.splitlines())


HEADER = "# exercise: broadcast\n# diagnosis: timeout\n"


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("x = 1\n", "begin with `# exercise: NAME`"),
        ("# a comment\n", "begin with `# exercise: NAME`"),
        ('"""Hint."""\n# diagnosis: wrong_value\n', "begin with `# exercise: NAME`"),
        ("# exercise: broadcast\n", "must be none or one of .*, and is 'nothing'"),
        ("# exercise: broadcast\n# diagnosis: sad\n", "must be none or one of .*, and is 'sad'"),
        (f"{HEADER}# diagnosis: deadlock\n", "more than one `# diagnosis:`"),
        ("# exercise: broadcast\n# diagnosis: none\n", "belong in a folder right/"),
        (f'{HEADER}\n"""Hint."""\n', "comes before the header"),
        (f'"""Hint."""\n{HEADER}# hint: words\n', "its hint as a docstring has no `# hint:`"),
        (f'"""Hint."""\n{HEADER}# on: 30_capstone\n', "has no `# on:`"),
        (f"{HEADER}# earns: half\n", "must be a number, not 'half'"),
        (f"{HEADER}# or: A = 2\n", "`A = …` must stand once outside of functions"),
        (f"{HEADER}# or: A = 2\nA = 1\nA = 3\n", "`A = …` must stand once"),
        (f"{HEADER}# or: A = 2\ndef f():\n    A = 1\n", "`A = …` must stand once"),
    ],
)
def test_a_file_that_is_no_answer_is_named(tmp_path, text, complaint):
    with pytest.raises(DeclarationError, match=complaint) as caught:
        read_answer(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "answer.py"))


@pytest.mark.parametrize(
    "header, complaint",
    [
        ("# diagnosis: timeout\n", "belong in a folder right/, and no others do"),
        ("# diagnosis: none\n# hint: words\n", "a right answer has no `# hint:`"),
    ],
)
def test_a_right_answer_has_no_more_to_say(tmp_path, header, complaint):
    with pytest.raises(DeclarationError, match=complaint):
        read_answer(write(tmp_path / RIGHT, f"# exercise: broadcast\n{header}"))


# Verdicts. ------------------------------------------------------------------------

ANSWERS = course.answers()
GOOD = [one for one in ANSWERS if one.known.diagnosis is None]
WRONG = [one for one in ANSWERS if one.known.diagnosis is not None]


def _first(answers, key):
    """The first answer of each kind."""
    chosen = {}
    for answer in answers:
        chosen.setdefault(key(answer), answer)
    return set(chosen.values())


def _shares():
    """All answers to an exercise, in three shares; only ``make test-all`` judges every one.

    ``make test`` judges a wrong one of each diagnosis, and of each exercise; the solved notebooks
    check right ones.  CI judges two more wrong ones of each exercise, of other diagnoses, and
    another right one.
    """
    # those that speak first: what is said of them is said of learners
    wrong = sorted(WRONG, key=lambda one: not one.known.speaks)
    few = _first(wrong, lambda one: one.known.diagnosis) | _first(wrong, lambda one: one.exercise)
    kinds = defaultdict(dict)
    for one in wrong:
        kinds[one.exercise].setdefault(one.known.diagnosis, one)
    more = {one for own in kinds.values() for one in [*own.values()][1:3]}
    more |= _first(GOOD, lambda one: one.exercise)
    shares = defaultdict(list)
    for one in ANSWERS:
        share = "first" if one in few else "exhaustive" if one in more else "nightly"
        shares[one.exercise, share].append(one)
    for (exercise, share), answers in shares.items():
        marks = [pytest.mark.timeout(120 + 10 * len(answers))]
        if share != "first":
            marks.append(getattr(pytest.mark, share))
        yield pytest.param(answers, id=f"{exercise}-{share}", marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [*_shares()])
def test_answers_get_the_verdicts_they_deserve(answers, subtests):
    for answer in answers:
        with subtests.test(answer.name):
            verdict = course.judge_answer(answer, catalogue(), seed=1)
            complaint = answer.complaint(verdict, course.specific(catalogue()[answer.exercise]))
            if complaint:
                pytest.fail(complaint, pytrace=False)


def test_every_wrong_answer_says_which_hint_it_must_get():
    assert [answer.name for answer in WRONG if not answer.known.hint] == []


#: Words of a hint for which messages have to go as it says.
DIRECTION = re.compile(
    r"\b(left|right) neighbour|\b(to|from) (the|its|your) (left|right)\b|\bround to the\b", re.I
)


def test_a_hint_that_names_a_direction_needs_messages_that_go_that_way():
    """Waits and exceptions are compared where a run fails; a schedule is no traffic, but a list."""
    unproved = {
        known.path.name
        for known in {answer.known.path: answer.known for answer in WRONG}.values()
        if known.speaks and DIRECTION.search(known.hint) and known.alike != "messages"
        if known.diagnosis not in (Diagnosis.EXCEPTION, Diagnosis.DEADLOCK)
        if known.exercises != ("ring_schedule",)
    }
    assert not unproved


def test_there_are_enough_answers():
    for name in catalogue():
        assert sum(answer.exercise == name for answer in GOOD) >= 3, name
        wrong = [answer for answer in WRONG if answer.exercise == name]
        assert len(wrong) >= 5, name
        assert len({answer.known.diagnosis for answer in wrong}) >= 3, name


def test_every_answer_belongs_to_an_exercise_of_its_chapter():
    for answer in ANSWERS:
        assert catalogue()[answer.exercise].chapter == answer.chapter, answer.name


def test_an_answer_may_be_what_differs_from_the_solved_chapter(tmp_path):
    path = write(
        tmp_path,
        "# exercise: train\n# diagnosis: wrong_shape\n# on: 30_capstone\n"
        "def train(*arguments):\n    return []\n",
    )
    answer = course.Answer(read_answer(path), "train")
    assert answer.source.startswith(course.solved("30_capstone"))
    assert answer.source.endswith(path.read_text())
    verdict = course.judge_answer(answer, catalogue(), seed=1)
    assert answer.complaint(verdict) == ""


def test_what_must_not_be_said_is_looked_for_in_message_and_hint(tmp_path):
    text = "# exercise: twice\n# diagnosis: exception\n# hint: -\n# not: tree | ring\n"
    answer = course.Answer(read_answer(write(tmp_path, text)), "twice")

    def said(message, hint, specific=()):
        verdict = ExerciseVerdict(
            "twice", "c", Status.FAILED, 0, 1, Diagnosis.EXCEPTION, message, hint
        )
        return answer.complaint(verdict, specific)

    assert said("all is known", "look at line 3") == ""
    assert "should not say 'tree'" in said("it is a tree", "look at line 3")
    assert "should not say 'ring'" in said("all is known", "turn the ring")
    assert "no specific hint" in said("all is known", "look at line 3", ["look at line 3"])


def test_complaints_are_not_silent():
    """A wrong answer that passes, or gets another word, is complained about."""
    right = GOOD[0]
    wrong = next(a for a in WRONG if a.exercise == right.exercise and not a.known.speaks)
    good = course.judge_answer(right, catalogue(), seed=1)
    bad = course.judge_answer(wrong, catalogue(), seed=1)
    assert right.complaint(good) == ""
    assert wrong.complaint(bad) == ""
    assert "should pass" in right.complaint(bad)
    assert "is a pass" in wrong.complaint(good)
