"""A graded class as plain data, which every page and export is made from, and as CSV tables."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property

from grader.classroom.store import Store, StoredSubmission
from grader.core.verdict import ExerciseVerdict, Status, SubmissionVerdict, total
from grader.report.summary import visible

__all__ = [
    "COLUMNS",
    "ClassResults",
    "GradingState",
    "NBGRADER_COLUMNS",
    "RequestedExercise",
    "SubmissionRow",
    "class_results",
    "gradebook",
    "nbgrader_gradebook",
    "number",
    "table",
    "text",
]


#: Bytes of a key: with an ending, and a temporary one, it is still a file name.
_LONGEST_KEY = 200


class GradingState:
    """How far the grading of a submission came."""

    GRADED = "graded"
    #: The grader failed, on the whole or on an exercise; the score is not final.
    ERROR = "error"
    NOTHING = "nothing handed in"


@dataclass(frozen=True)
class RequestedExercise:
    """An exercise that the class was asked to do."""

    name: str
    chapter: str
    points: float


@dataclass(frozen=True)
class SubmissionRow:
    """One submission.

    Attributes:
        key: a safe file name, unique in the class.
        student: the name exactly as it arrived; data, whatever it looks like.
        email, number: if they came with it.
        exercises: the verdicts.
        earlier: by exercise, the verdict of an earlier grading.
        notes: what is to be said about its files.
        fault: what the grader itself failed at; empty if it did not.
        unsafe: whether it was graded without a sandbox.
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

    @cached_property
    def by_name(self) -> dict[str, ExerciseVerdict]:
        """The verdicts by exercise."""
        return {verdict.name: verdict for verdict in self.exercises}

    @property
    def score(self) -> float:
        """Points earned; not final while :attr:`standing` is ``error``."""
        return total(verdict.score for verdict in self.exercises)

    @property
    def seconds(self) -> float:
        """How long the judging of all exercises took."""
        return sum(verdict.seconds for verdict in self.exercises)

    @property
    def standing(self) -> str:
        """A word of :class:`GradingState`."""
        if self.fault or any(v.status is Status.ERROR for v in self.exercises):
            return GradingState.ERROR
        return GradingState.GRADED if self.exercises else GradingState.NOTHING

    def verdict(self) -> SubmissionVerdict:
        """The submission as ``python -m grader check`` would tell of it."""
        seed = self.exercises[0].seed if self.exercises else 0
        return SubmissionVerdict(self.student, seed, self.exercises)


@dataclass(frozen=True)
class ClassResults:
    """A class.

    Attributes:
        title: of the assignment.
        graded_at: when, as ISO 8601 text.
        rows: one per submission, in the order of the class.
        course: what the class was asked, in the order of the course.  Exercises
            that somebody handed in belong to it in any case.

    Raises:
        ValueError: a key is no safe file name, or two rows share one.
    """

    title: str
    graded_at: str
    rows: tuple[SubmissionRow, ...]
    course: tuple[RequestedExercise, ...] = ()

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
        """What the class could earn, the same for everyone."""
        return total(asked.points for asked in self.asked)

    def points_of(self, row: SubmissionRow) -> float:
        """What a student could earn: all that was asked, but for what could not be judged here."""
        skipped = {v.name for v in row.exercises if v.status is Status.SKIPPED}
        return total(asked.points for asked in self.asked if asked.name not in skipped)

    def ungraded(self, row: SubmissionRow) -> str:
        """Why a submission has no final score that could be handed on; empty if it has one."""
        if row.standing == GradingState.ERROR:
            return "the grader failed on it; grade it again"
        if row.exercises and not self.points_of(row):
            return "nothing of it could be judged here"
        return ""

    def share(self, row: SubmissionRow) -> float:
        """A final score as a share of what the student could earn.

        Gradebooks with one maximum for everybody get this share of it.  Points alone would
        count an exercise that could not be judged here as a failed one.
        """
        most = self.points_of(row)
        return row.score / most if most else 0.0


def _require_safe(key: str) -> None:
    plain = key.isprintable() and not set(key) & set('/\\:*?"<>|')
    if not plain or key[:1] in ("", ".", "-", " ") or len(key.encode()) > _LONGEST_KEY:
        raise ValueError(
            f"{key!r} is no safe file name; a key has no slashes or control characters, does not"
            f" begin with a dot, and has 1 to {_LONGEST_KEY} bytes"
        )


# Text of strangers in CSV files. --------------------------------------------------
#
# Excel, LibreOffice and Google Sheets take a cell that begins like a formula for
# one, also when it is quoted; a student could call himself ``=HYPERLINK(…)`` and
# have the instructor's gradebook sent away.  OWASP
# (https://owasp.org/www-community/attacks/CSV_Injection) advises to quote every
# cell and to put an apostrophe before those that begin with ``=``, ``+``, ``-``,
# ``@``, a tab, a carriage return or a line feed, which includes the full-width
# forms of those signs.
#
# Two things are added.  Spreadsheets skip leading spaces, so they are skipped here
# as well.  And where a comma is the decimal sign, Excel takes semicolons for the
# ends of cells: so a sign that follows a separator gets an apostrophe, too.

_BEGINS = re.compile(r"\s*[=+\-@＝＋－＠]")

#: Where a cell could begin for a program that counts on another separator.
_BEGINS_WITHIN = re.compile(r"([;,|][\s\"']*)(?=[=+\-@＝＋－＠])")


def text(stranger: str | None) -> str:
    """A cell that a spreadsheet shows as it is.

    Control characters are spelled out, line breaks as well, so that a record is
    one line; so are characters that turn the reading direction, and lone
    surrogates, which have no UTF-8.
    """
    if not stranger:
        return ""
    plain = visible(stranger).replace("\n", "\\n").replace("\t", "\\t")
    plain = _BEGINS_WITHIN.sub(r"\1'", plain)
    return f"'{plain}" if _BEGINS.match(stranger) else plain


def number(value: float) -> str:
    """A number of points, to the thousandth."""
    return f"{round(value, 3):.10g}"


def table(
    rows: Iterable[Sequence[str]], *, delimiter: str = ",", newline: str = "\r\n", bom: bool = False
) -> bytes:
    """Rows of cells as a file: RFC 4180, in UTF-8."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    encoded = stream.getvalue().encode("utf-8", "backslashreplace")
    return b"\xef\xbb\xbf" + encoded if bom else encoded


# ``gradebook.csv``: one row per submission, and one column per exercise. ----------

#: Before the exercises.
COLUMNS = ("student", "key", "email", "number", "score", "max_score", "status", "notes")


def gradebook(results: ClassResults) -> bytes:
    """The file.

    No row is ever left out.  What the grader failed at has the word ``error``
    instead of points, and what could not be judged here ``skipped``, which
    ``max_score`` does not count; a cell is empty where nothing was handed in.
    A score that is not final is an empty cell.

    The file begins with a byte order mark: people open it in Excel, which
    without one takes it for the machine's old code page and garbles every name
    that is not ASCII.  Programs read it as ``utf-8-sig``.
    """
    head = [*COLUMNS, *(text(asked.name) for asked in results.asked)]
    return table([head, *(_record(results, row) for row in results.rows)], bom=True)


def _record(results: ClassResults, row: SubmissionRow) -> list[str]:
    notes = list(row.notes)
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
        row.standing,
        text("; ".join(notes)),
        *(_cell(row, asked.name) for asked in results.asked),
    ]


def _cell(row: SubmissionRow, name: str) -> str:
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
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def nbgrader_gradebook(results: ClassResults) -> bytes:
    """The file: one assignment, one row per submission.

    nbgrader gives 0 points to who handed in nothing, and so does this.  A score
    that is not final is an empty cell, and ``max_score`` leaves out what could
    not be judged here, as ``gradebook.csv`` does.
    """
    return table(
        [NBGRADER_COLUMNS, *(_nbgrader_record(results, row) for row in results.rows)], newline="\n"
    )


def _nbgrader_record(results: ClassResults, row: SubmissionRow) -> list[str]:
    # only "Last, First" says which is which; names cannot be split by a program
    last, comma, first = row.student.partition(",")
    score = "" if results.ungraded(row) else number(row.score)
    return [
        text(results.title),
        "",
        "",
        text(row.number or row.email or row.key),
        text(last if comma else row.student),
        text(first.strip()),
        text(row.email),
        score,
        number(0.0),
        score,
        number(results.points_of(row)),
    ]


# The results of a class, read from the store. -------------------------------------


def class_results(store: Store) -> ClassResults:
    """A class as far as it has been graded.

    The course is what somebody handed in: exercises that nobody was asked for
    are nobody's lost points.
    """
    entries = store.entries()
    wanted = {name for entry in entries for name in entry.exercises}
    course = {
        name: RequestedExercise(name, chapter, points) for name, chapter, points in store.course
    }
    rows = tuple(_row(store, course, entry) for entry in entries)
    asked = tuple(one for name, one in course.items() if name in wanted)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return ClassResults(store.title, now, rows, asked)


def _row(
    store: Store, course: dict[str, RequestedExercise], entry: StoredSubmission
) -> SubmissionRow:
    found = store.verdicts(entry.key)
    return SubmissionRow(
        key=entry.key,
        student=entry.student,
        email=entry.email,
        number=entry.number,
        exercises=tuple(
            # a verdict that failed is false, and one all the same
            found[name] if name in found else _unjudged(course, name, entry.fault)
            for name in entry.exercises
        ),
        earlier=store.earlier(entry.key),
        notes=(*entry.problems, *entry.found),
        fault=entry.fault,
        unsafe=store.is_unsafe(entry.key),
    )


def _unjudged(course: dict[str, RequestedExercise], name: str, fault: str) -> ExerciseVerdict:
    """An exercise that is due and has no verdict: never a 0 in silence."""
    asked = course.get(name, RequestedExercise(name, "", 0.0))  # one that the course had earlier
    message = f"not judged: {fault}" if fault else "not judged yet; grade again"
    return ExerciseVerdict(name, asked.chapter, Status.ERROR, 0.0, asked.points, message=message)
