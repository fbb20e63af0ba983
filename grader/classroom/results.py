"""A graded class as plain data, from which pages and exports are made.

It makes the CSV tables as well, and the list of submissions that are alike.
"""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from itertools import combinations

from grader.classroom.assignment import UNTITLED, Assignment, Lateness, RequestedExercise, Shown
from grader.classroom.decisions import (
    Decision,
    StudentDecisions,
    by_student,
    extended,
    names_of,
)
from grader.classroom.store import Store, StoredSubmission
from grader.exercise.verdict import ExerciseVerdict, Status, SubmissionVerdict, total
from headcount.report import visible

#: Bytes of a key: with an ending, and a temporary one, it is still a file name.
_LONGEST_KEY = 200


class GradingState:
    """The words for the state of a submission's grading."""

    GRADED = "graded"
    #: The grader failed, on the whole or on an exercise; the score is not final.
    ERROR = "error"
    NOTHING = "nothing handed in"
    #: The grading was stopped before all of it was judged.
    WAITING = "not judged yet"
    #: Somebody has excused the student from the assignment.
    EXCUSED = "excused"


@dataclass(frozen=True)
class SubmissionRow:
    """One submission.

    Attributes:
        key: a safe file name, unique in the class.
        student: the student's name as it arrived; it is data, whatever it looks like.
        email, number: the student's address and number or login, where they are known.
        exercises: the verdicts.
        earlier: the verdicts of an earlier grading, by exercise.
        notes: remarks on its files.
        fault: the grader's own failure on the whole submission, or an empty string.
        unsafe: whether it was graded without a sandbox.
        platform: name of the layout that ``number`` comes from; empty if it is not known.
        numbers: what else tells who the student is, with its kind, from a roster.
        upload: the platform's number of the newest upload, or 0.
        handed_in: when it was handed in, where that is known.
        due: the student's deadline, if there is one.
        lateness: how late it is; None if it is in time.
        penalty: points that are taken off for that.
        waiting: the exercises that are due and still have to be judged.
        pending: whether it still has to be judged, perhaps again, since it has changed.
        decisions: what a person has decided about it.
        by_hand: the points that a person has given, by exercise of the assignment.
    """

    key: str
    student: str
    email: str | None = None
    number: str | None = None
    exercises: tuple[ExerciseVerdict, ...] = ()
    earlier: Mapping[str, ExerciseVerdict] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fault: str = ""
    unsafe: bool = False
    platform: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    upload: int = 0
    handed_in: datetime | None = None
    due: datetime | None = None
    lateness: Lateness | None = None
    penalty: float = 0.0
    waiting: tuple[str, ...] = ()
    pending: bool = False
    decisions: StudentDecisions = field(default_factory=StudentDecisions)
    by_hand: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, ExerciseVerdict]:
        """The verdicts by exercise."""
        return {verdict.name: verdict for verdict in self.exercises}

    @property
    def earned(self) -> float:
        """Points of all exercises, before anything is taken off for being late."""
        names = dict.fromkeys((*self.by_name, *self.by_hand))
        return total(self.score_of(name) or 0.0 for name in names)

    def is_excused(self, name: str) -> bool:
        """Return whether the student is excused from an exercise."""
        return self.decisions.excuse is not None or name in self.decisions.excuses

    def score_of(self, name: str) -> float | None:
        """Return the points of an exercise: those that a person has given, or the judged ones.

        ``None`` if there are none, because nothing was judged or the student is excused.
        """
        if self.is_excused(name):
            return None
        if name in self.by_hand:
            return self.by_hand[name]
        return self.by_name[name].score if name in self.by_name else None

    def is_open(self, name: str) -> bool:
        """Return whether an exercise's points are not final, since nobody has decided on it."""
        return name not in self.by_hand and not self.is_excused(name)

    @property
    def decided(self) -> list[str]:
        """What a person has decided, with the judged points beside it, one sentence for each."""
        return [self.words_of(one) for one in self.decisions.all()]

    def words_of(self, decision: Decision) -> str:
        """Return a decision as a sentence, with the points that are judged now."""
        verdict = self.by_name.get(decision.exercise)
        return decision.words(None if verdict is None else verdict.score)

    @property
    def score(self) -> float:
        """Points, which are not final while :attr:`state` is ``error`` or ``not judged yet``."""
        return max(round(self.earned - self.penalty, 3), 0.0)

    @property
    def seconds(self) -> float:
        """Seconds that judging all exercises took."""
        return sum(verdict.seconds for verdict in self.exercises)

    @property
    def state(self) -> str:
        """A word of :class:`GradingState`."""
        if self.decisions.excuse is not None:
            return GradingState.EXCUSED
        lost = [v.name for v in self.exercises if v.status is Status.ERROR]
        if any(map(self.is_open, lost)) or (self.fault and not lost):
            return GradingState.ERROR
        if any(map(self.is_open, self.waiting)) or (self.pending and not self.waiting):
            return GradingState.WAITING
        return GradingState.GRADED if self.exercises or self.by_hand else GradingState.NOTHING

    def verdict(self) -> SubmissionVerdict:
        """Return the submission's verdict in the form of ``python -m grader check``."""
        seed = self.exercises[0].seed if self.exercises else 0
        return SubmissionVerdict(self.student, seed, self.exercises)


@dataclass(frozen=True)
class ClassResults:
    """The results of a class.

    Attributes:
        title: title of the assignment.
        graded_at: time of the grading, as ISO 8601 text.
        rows: one row for each submission, in the order of the class.
        course: the exercises of the assignment, in the order of the course.  Exercises
            that were handed in belong to :attr:`asked` in any case.
        assignment: what the instructor has stated of the assignment.
        not_here: decisions about students who have handed in nothing yet.
        folder: the folder of the results, as a person would name it; empty if it is not known.

    Raises:
        ValueError: a key is no safe file name, or two rows share one.
    """

    title: str
    graded_at: str
    rows: tuple[SubmissionRow, ...]
    course: tuple[RequestedExercise, ...] = ()
    assignment: Assignment = field(default_factory=Assignment)
    not_here: tuple[Decision, ...] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for row in self.rows:
            _require_safe(row.key)
            # some file systems fold case, and some normalise
            folded = unicodedata.normalize("NFC", row.key).casefold()
            if folded in seen:
                raise ValueError(f"two submissions have the key {row.key!r}; make keys unique")
            seen[folded] = row.key

    @cached_property
    def asked(self) -> tuple[RequestedExercise, ...]:
        """Every exercise that has a column."""
        found = {asked.name: asked for asked in self.course}
        extra: dict[str, RequestedExercise] = {}
        for row in self.rows:
            for v in row.exercises:
                if v.name not in found:
                    extra.setdefault(v.name, RequestedExercise(v.name, v.chapter, v.max_score))
        return (*found.values(), *sorted(extra.values(), key=lambda asked: asked.chapter))

    @cached_property
    def points(self) -> float:
        """Points of all exercises, the same for every student."""
        return total(asked.points for asked in self.asked)

    def points_of(self, row: SubmissionRow) -> float:
        """Return the points that a student could earn.

        They are those of all exercises but the skipped ones, if nobody has given points for them,
        and those that the student is excused from.
        """
        left_out = {v.name for v in row.exercises if v.status is Status.SKIPPED} - set(row.by_hand)
        left_out |= {asked.name for asked in self.asked if row.is_excused(asked.name)}
        return total(asked.points for asked in self.asked if asked.name not in left_out)

    def ungraded(self, row: SubmissionRow) -> str:
        """Return why a submission has no final score to export, or an empty string."""
        if row.state == GradingState.ERROR:
            return "the grader failed on it; grade it again"
        if row.state == GradingState.WAITING:
            return "it is not judged yet; grade again"
        if row.decisions.excuse is not None:
            return f"excused by {row.decisions.excuse.by}"
        if row.exercises and not self.points_of(row):
            return "nothing of it could be judged here"
        return ""

    def share(self, row: SubmissionRow) -> float:
        """Return a final score as a share of the points that the student could earn.

        Gradebooks with one maximum for all students get this share of it.  Points alone
        would count an exercise that could not be judged here as a failed one.
        """
        most = self.points_of(row)
        return row.score / most if most else 0.0


def as_shown(verdict: ExerciseVerdict, shows: Shown) -> ExerciseVerdict:
    """Return a verdict with as much as students are to see."""
    if shows == "hints":
        return verdict
    if shows == "verdicts":
        return replace(verdict, hint="")
    if verdict.status in (Status.ERROR, Status.SKIPPED):
        return verdict  # why there are no points is no verdict
    return replace(verdict, diagnosis=None, message="", hint="", cases=(), others=None)


def _require_safe(key: str) -> None:
    plain = key.isprintable() and not set(key) & set('/\\:*?"<>|')
    if not plain or key[:1] in ("", ".", "-", " ") or len(key.encode()) > _LONGEST_KEY:
        raise ValueError(
            f"{key!r} is no safe file name; a key has no slashes or control characters, does not"
            f" begin with a dot, and has 1 to {_LONGEST_KEY} bytes"
        )


# Untrusted text in CSV files. -----------------------------------------------------
#
# Excel, LibreOffice and Google Sheets take a cell that begins like a formula for
# one, also when it is quoted; a student with the name ``=HYPERLINK(…)`` could have
# the instructor's gradebook sent away.  OWASP
# (https://owasp.org/www-community/attacks/CSV_Injection) advises to quote every
# cell and to put an apostrophe before those that begin with ``=``, ``+``, ``-``,
# ``@``, a tab, a carriage return or a line feed, which includes the full-width
# forms of those signs.
#
# Two rules are added.  Spreadsheets skip leading spaces, so they are skipped here
# as well.  And where a comma is the decimal sign, Excel takes semicolons for the
# ends of cells, so a sign that follows a separator gets an apostrophe as well.

_BEGINS = re.compile(r"\s*[=+\-@＝＋－＠]")

#: Places where a cell could begin for a program that expects another separator.
_BEGINS_WITHIN = re.compile(r"([;,|][\s\"']*)(?=[=+\-@＝＋－＠])")


def text(untrusted: str | None) -> str:
    """Return a cell that a spreadsheet shows as text.

    Control characters and line breaks are escaped, so that a record is one line; so
    are characters that change the reading direction, and lone surrogates, which
    UTF-8 cannot encode.
    """
    if not untrusted:
        return ""
    plain = visible(untrusted).replace("\n", "\\n").replace("\t", "\\t")
    plain = _BEGINS_WITHIN.sub(r"\1'", plain)
    return f"'{plain}" if _BEGINS.match(untrusted) else plain


def number(value: float) -> str:
    """Return a number of points, rounded to the thousandth, as text."""
    return f"{round(value, 3):.10g}"


def table(
    rows: Iterable[Sequence[str]], *, delimiter: str = ",", newline: str = "\r\n", bom: bool = False
) -> bytes:
    """Return rows of cells as a file: RFC 4180, in UTF-8."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    encoded = stream.getvalue().encode("utf-8", "backslashreplace")
    return b"\xef\xbb\xbf" + encoded if bom else encoded


# ``gradebook.csv``: one row per submission, and one column per exercise. ----------

#: The columns before the exercises.
COLUMNS = (
    *("student", "key", "email", "number", "score", "max_score", "status", "notes"),
    *("handed_in", "taken_off_for_lateness"),
)


def gradebook(results: ClassResults) -> bytes:
    """Return ``gradebook.csv``.

    No row is ever left out.  An exercise that the grader failed at has the word
    ``error`` instead of points, one that a stopped grading has not reached ``not judged yet``,
    and one that could not be judged here ``skipped``, which ``max_score`` does not count; a cell
    is empty where nothing was handed in.
    A score that is not final is an empty cell.

    The file begins with a byte order mark: people open it in Excel, which
    without one takes it for the machine's old code page and garbles every name
    that is not ASCII.  Programs read it as ``utf-8-sig``.
    """
    head = [*COLUMNS, *(text(asked.name) for asked in results.asked)]
    return table([head, *(_record(results, row) for row in results.rows)], bom=True)


def _record(results: ClassResults, row: SubmissionRow) -> list[str]:
    notes = [*row.decided, *row.notes]
    if row.unsafe:
        notes.insert(0, "graded without a sandbox")
    if row.fault:
        notes.insert(0, f"the grader failed: {row.fault}")
    return [
        text(row.student),
        text(row.key),
        text(row.email),
        text(row.number),
        "" if results.ungraded(row) else number(row.score),
        number(results.points_of(row)),
        row.state,
        text("; ".join(notes)),
        row.handed_in.isoformat(" ", "minutes") if row.handed_in else "",
        number(row.penalty) if row.lateness else "",
        *(_cell(row, asked.name) for asked in results.asked),
    ]


def _cell(row: SubmissionRow, name: str) -> str:
    if row.is_excused(name):
        return GradingState.EXCUSED
    if name in row.by_hand:
        return number(row.by_hand[name])
    if name in row.waiting:
        return GradingState.WAITING
    verdict = row.by_name.get(name)
    if verdict is None:
        return ""
    if verdict.status in (Status.ERROR, Status.SKIPPED):
        return str(verdict.status)
    return number(verdict.score)


# The gradebook as ``nbgrader export`` writes it. ----------------------------------
#
# Columns and their order are those of ``CsvExportPlugin``
# (https://github.com/jupyter/nbgrader/blob/main/nbgrader/plugins/export.py), described at
# https://nbgrader.readthedocs.io/en/stable/user_guide/creating_and_grading_assignments.html.
# There, too, a value that is not known is an empty cell.

NBGRADER_COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


def nbgrader_gradebook(results: ClassResults) -> bytes:
    """Return nbgrader's table of one assignment, with one row for each submission.

    nbgrader gives 0 points to a student who handed in nothing, and so does this file.
    A score that is not final is an empty cell, and ``max_score`` leaves out what could
    not be judged here, as ``gradebook.csv`` does.
    """
    return table(
        [NBGRADER_COLUMNS, *(_nbgrader_record(results, row) for row in results.rows)], newline="\n"
    )


def _nbgrader_record(results: ClassResults, row: SubmissionRow) -> list[str]:
    # only "Last, First" says which is which; names cannot be split by a program
    last, comma, first = row.student.partition(",")
    final = not results.ungraded(row)
    return [
        text(results.title),
        row.due.isoformat(" ", "seconds") if row.due else "",
        row.handed_in.isoformat(" ", "seconds") if row.handed_in else "",
        text(row.number or row.email or row.key),
        text(last if comma else row.student),
        text(first.strip()),
        text(row.email),
        number(row.earned) if final else "",
        # what was taken off, which is not more than there was
        number(row.earned - row.score),
        number(row.score) if final else "",
        number(results.points_of(row)),
    ]


# The results of a class, read from the store. -------------------------------------


def class_results(store: Store) -> ClassResults:
    """Return the results of a class as far as it has been graded.

    What is due is what the assignment states.  If it states nothing, the exercises that at least
    one student handed in are taken for due, so that the other exercises of the course cost no
    points; :func:`doubts` says where that is a guess.
    """
    entries = store.entries()
    assignment = store.assignment
    course = {
        name: RequestedExercise(name, chapter, points) for name, chapter, points in store.course
    }
    asked = assignment.exercises
    if not asked:
        wanted = {name for entry in entries for name in entry.exercises}
        asked = tuple(one for name, one in course.items() if name in wanted)
    # a stopped grading may leave verdicts on what is no longer a part of the assignment
    course = {one.name: one for one in asked} if assignment.exercises else course
    decisions = store.decisions.all()
    holding, not_here = by_student(decisions, entries)
    late = extended(assignment, decisions, entries)
    rows = tuple(
        _with_decisions(_row(store, late, course, entry, whose), asked, whose)
        for entry in entries
        for whose in [holding.get(entry.key)]
    )
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    results = ClassResults(
        assignment.title or UNTITLED,
        now,
        rows,
        asked,
        assignment,
        tuple(not_here),
        str(store.path.parent.resolve()),
    )
    return replace(results, rows=tuple(_with_lateness(results, row) for row in rows))


def _row(
    store: Store,
    assignment: Assignment,
    course: dict[str, RequestedExercise],
    entry: StoredSubmission,
    decisions: StudentDecisions | None,
) -> SubmissionRow:
    found = store.verdicts(entry.key)
    listed = [name for name in entry.exercises if not assignment.exercises or name in course]
    exercises, waiting = [], []
    for name in listed:
        if name in found:
            exercises.append(_with_points(found[name], course))
        elif entry.fault:
            exercises.append(_unjudged(course, name, entry.fault))
        else:
            waiting.append(name)
    notes = [*entry.problems, *entry.found]
    found_here = decisions or StudentDecisions()
    given = {*entry.exercises, *found_here.points, *found_here.excuses}
    absent = [one.name for one in assignment.exercises if one.name not in given]
    if absent and entry.exercises and found_here.excuse is None:
        notes.append(f"not handed in, 0 points: {', '.join(absent)}")
    handed_in = datetime.fromisoformat(entry.handed_in) if entry.handed_in else None
    who = names_of(entry)
    handed_in = assignment.handed_in_by(*who) or handed_in
    return SubmissionRow(
        key=entry.key,
        student=entry.student,
        email=entry.email,
        number=entry.number,
        exercises=tuple(exercises),
        earlier={
            name: _with_points(verdict, course)
            for name, verdict in store.earlier(entry.key).items()
            if name in listed
        },
        notes=tuple(notes),
        fault=entry.fault,
        unsafe=store.is_unsafe(entry.key),
        platform=entry.platform,
        numbers=tuple(entry.numbers),
        upload=entry.upload,
        handed_in=None if handed_in is None else assignment.aware(handed_in),
        due=assignment.due_for(*who),
        lateness=Lateness() if entry.late else None,
        waiting=tuple(waiting),
        pending=entry.pending,
    )


def _with_decisions(
    row: SubmissionRow, asked: Iterable[RequestedExercise], decisions: StudentDecisions | None
) -> SubmissionRow:
    """Return a row with what a person has decided about it; what was judged stays beside it."""
    if decisions is None:
        return row
    by_hand = {
        one.name: round(decisions.points[one.name].points_of(one.points), 6)
        for one in asked
        if one.name in decisions.points
    }
    return replace(row, decisions=decisions, by_hand=by_hand)


def _with_lateness(results: ClassResults, row: SubmissionRow) -> SubmissionRow:
    """Return a row with what its lateness costs, and a note that says it."""
    marked = row.lateness is not None
    late = results.assignment.lateness(row.due, row.handed_in, marked) if row.exercises else None
    if late is None:
        return replace(row, lateness=None)
    # no more can be taken than there is
    penalty = min(round(late.taken * results.points_of(row), 3), row.earned)
    return replace(row, lateness=late, penalty=penalty, notes=(*row.notes, late.words))


def _with_points(
    verdict: ExerciseVerdict, course: Mapping[str, RequestedExercise]
) -> ExerciseVerdict:
    """Return a verdict with the points that the exercise is worth in the assignment."""
    asked = course.get(verdict.name)  # None for one that the course had earlier
    if asked is None or not verdict.max_score or asked.points == verdict.max_score:
        return verdict
    score = round(verdict.score / verdict.max_score * asked.points, 6)
    return replace(verdict, score=score, max_score=asked.points)


def _unjudged(course: dict[str, RequestedExercise], name: str, fault: str) -> ExerciseVerdict:
    """Return an error for an exercise that is due and has no verdict; 0 points would hide it."""
    asked = course.get(name, RequestedExercise(name, "", 0.0))  # one that the course had earlier
    message = f"not judged: {fault}"
    return ExerciseVerdict(name, asked.chapter, Status.ERROR, 0.0, asked.points, message=message)


def doubts(results: ClassResults) -> list[str]:
    """Return sentences that say which exercises are only guessed to be due.

    Without a stated assignment, one student's file makes an exercise due for all.  So those that
    at most half of the class have handed in are named.
    """
    if results.assignment.exercises:
        return []
    answering = [row for row in results.rows if row.exercises or row.waiting]
    by_count: dict[int, list[str]] = defaultdict(list)
    for asked in results.asked:
        by_count[sum(asked.name in {*row.by_name, *row.waiting} for row in answering)].append(
            asked.name
        )
    students = f"{len(answering)} student{'s' * (len(answering) != 1)}"
    found = [
        f"{', '.join(names)}: handed in by {count} of {students}"
        for count, names in sorted(by_count.items())
        if 2 * count <= len(answering)
    ]
    if found:
        found[-1] += (
            "; what one student hands in counts for all. If that is not meant, say what is due:"
            " --exercises 02-05,ring_all_reduce, or --assignment FILE"
        )
    return found


# Pairs of submissions that are more alike than the exercises explain. -------------
#
# The list is to be looked at, and never a verdict.  Short answers to the same question are alike by
# themselves, friends learn together, and two copies of a page on the web agree as well.  So the
# weight of a fingerprint is the logarithm of its rarity, log(answers / submissions that have it).
#
# A fingerprint that too many submissions have does not count at all: it is given code, or the
# obvious way.  Moss, which winnowing was made for, ignores a passage that more than ten programs
# share (its option ``-m``).  Here that number follows the class: half of the answers where there
# are few, so that three copies among ten are seen and six of one way are not, and a fifth where
# there are many.  Three are never too many; a passage that all answers have weighs log 1 = 0.

#: Smallest share of the smaller submission's weight that both must have.
_LEAST_SHARE = 0.6

#: Smallest weight of the common part, below which it means nothing.
_LEAST_WEIGHT = 8.0

#: Share of the answers beyond which a fingerprint is common, in small and in large classes.
_HALF, _FIFTH = 0.5, 0.2

#: Number of submissions up to which half of the answers counts, and one that is never too many.
_MANY_OWNERS, _FEW_OWNERS = 10, 3

#: Pairs that are listed.
_MOST_PAIRS = 200


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    Attributes:
        first, second: their keys.
        share: the common weight as a share of the smaller one's weight, 0 to 1.
        weight: the common weight; larger is rarer.
        exercises: the exercises that have common fingerprints, most alike first.
    """

    first: str
    second: str
    share: float
    weight: float
    exercises: tuple[str, ...]


def alike(prints: Mapping[str, Mapping[str, Sequence[int]]]) -> list[Pair]:
    """Return pairs of submissions that are alike, most alike first.

    Args:
        prints: the fingerprints by submission and exercise, see
            :func:`grader.submission.submission.fingerprints`.
    """
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    answers: Counter[str] = Counter()
    for key, exercises in prints.items():
        for name, own in exercises.items():
            answers[name] += bool(own)
            for one in set(own):
                owners[name, one].append(key)
    totals: dict[str, float] = defaultdict(float)
    common: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (name, _), keys in owners.items():
        weight = math.log(answers[name] / len(keys))
        if len(keys) > _most_owners(answers[name]) or weight <= 0:
            continue
        for key in keys:
            totals[key] += weight
        for first, second in combinations(keys, 2):
            common[first, second][name] += weight
    found = []
    for (first, second), by_exercise in common.items():
        weight = sum(by_exercise.values())
        share = weight / min(totals[first], totals[second])
        if share >= _LEAST_SHARE and weight >= _LEAST_WEIGHT:
            names = tuple(sorted(by_exercise, key=by_exercise.__getitem__, reverse=True))
            found.append(Pair(first, second, round(share, 3), round(weight, 1), names))
    found.sort(key=lambda pair: (-pair.share * pair.weight, pair.first, pair.second))
    return found[:_MOST_PAIRS]


def _most_owners(answers: int) -> int:
    """Return how many answers may share a fingerprint that still counts."""
    return max(_FEW_OWNERS, min(_MANY_OWNERS, int(_HALF * answers)), int(_FIFTH * answers))
