"""The pages of a class, and the folder of results that holds them.

Three measures keep a student's text from acting in the reader's browser. Every value that a
template prints is escaped, and its control characters are spelled out, in every template.  The
script gets no data: it reads the table that is on the page, so there is no JavaScript to break out
of. And a page's content security policy lets nothing run but that one script, by its hash, and
nothing be loaded at all.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shlex
import stat
import statistics
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from grader import __version__
from grader.classroom.assignment import RequestedExercise
from grader.classroom.names import is_key
from grader.classroom.results import (
    ClassResults,
    GradingState,
    Pair,
    SubmissionRow,
    as_shown,
    doubts,
    gradebook,
)
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status
from grader.files import is_unfinished, replace_file
from grader.report.html import exercise_html
from grader.report.json import to_json
from grader.report.looks import Look
from grader.report.summary import hung, in_words, look_of, points
from headcount.core.verdict import Diagnosis
from headcount.report import visible

# Templates. -----------------------------------------------------------------------

_HERE = "grader.classroom"


def page(template: str, script: str = "", **values: Any) -> str:
    """Return a page as HTML.

    Args:
        template: file name of the template.
        script: file name of the one script that may run; empty if none may.
        values: the values that the template prints.
    """
    code = _asset(script) if script else ""
    return (
        _environment()
        .get_template(template)
        .render(
            values,
            style=Markup(_asset("page.css")),
            script=Markup(code),
            policy=_policy(code),
            version=__version__,
        )
    )


@cache
def _asset(name: str) -> str:
    return resources.files(_HERE).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader(_HERE, "assets"),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "points": points,
        "percent": lambda share: f"{share:.0%}".replace("%", " %"),
        "seconds": lambda value: f"{value:.1f}" if value >= 0.05 else f"{value:.2f}",
        "count": _count,
        "moment": _moment,
        "card": lambda verdict: Markup(exercise_html(verdict, cases=False)),
    }
    return found


def _printable(value: Any) -> Any:
    """Return a value that a template prints, with invisible characters escaped."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value
    return visible(value)


def _moment(iso: str) -> str:
    """Return a time for people, in figures that read the same in every language."""
    try:
        found = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{found:%Y-%m-%d %H:%M} {found.tzname() or ''}".rstrip()


def _count(number: int, one: str, many: str = "") -> str:
    """``1 student``, ``2 students``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


# Figures of a class: numbers and lists, before they are laid out. -----------------

#: Bars of the distribution.
_BINS = 10

#: Mistakes that are named for an exercise, and rows of the lists of the slowest.
_MOST, _SLOWEST = 3, 8


@dataclass(frozen=True)
class Bin:
    """The number of scores in a tenth of the range, in percent; the last bin has both its ends."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class MistakeCount:
    """A way in which an exercise was failed, and the submissions that failed it so."""

    diagnosis: Diagnosis
    hint: str
    rows: tuple[SubmissionRow, ...]

    @property
    def count(self) -> int:
        """The number of these submissions."""
        return len(self.rows)


@dataclass(frozen=True)
class ExerciseFigures:
    """The figures of an exercise over the whole class.

    Attributes:
        judged: number of answers that could be judged.
        passed, half, partly, hung, failed, empty: numbers that add up to ``judged``; ``half``
            is right but misses the point, ``partly`` has some points, ``empty`` was not attempted.
        unjudged: number of answers that were skipped, or that the grader failed on.
        median, longest: seconds that judging took.
    """

    asked: RequestedExercise
    judged: int
    passed: int
    half: int
    partly: int
    hung: int
    failed: int
    empty: int
    unjudged: int
    mistakes: tuple[MistakeCount, ...]
    median: float
    longest: float

    @property
    def rate(self) -> float | None:
        """The share that passed."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True)
class ExerciseOutcome:
    """A submission's verdict on one exercise."""

    row: SubmissionRow
    verdict: ExerciseVerdict


@dataclass(frozen=True)
class GradeChange:
    """A verdict that differs from that of an earlier grading."""

    row: SubmissionRow
    before: ExerciseVerdict
    now: ExerciseVerdict

    @property
    def points(self) -> float:
        """Points won, or lost if negative."""
        return round(self.now.score - self.before.score, 3)


@dataclass(frozen=True)
class ClassFigures:
    """A class in numbers and lists.

    Attributes:
        graded: rows with a final score.
        bins: distribution of their scores.
        mean, median: mean and median of their scores; ``None`` if there are none.
        exercises: figures of each exercise, in the order of the course.
        faults: rows that the grader failed on as a whole.
        errors: exercises that the grader failed on.
        skipped: exercises that could not be judged here.
        unsafe: rows graded without a sandbox.
        nothing: rows without an exercise.
        waiting: rows that a stopped grading has not finished.
        late: rows that were handed in late.
        hung: exercises that ended in a deadlock or a timeout.
        slowest: the exercises that took longest to judge.
        longest: the submissions that took longest to judge.
        changes: verdicts that differ from an earlier grading.
    """

    graded: tuple[SubmissionRow, ...]
    bins: tuple[Bin, ...]
    mean: float | None
    median: float | None
    exercises: tuple[ExerciseFigures, ...]
    faults: tuple[SubmissionRow, ...]
    errors: tuple[ExerciseOutcome, ...]
    skipped: tuple[ExerciseOutcome, ...]
    unsafe: tuple[SubmissionRow, ...]
    nothing: tuple[SubmissionRow, ...]
    waiting: tuple[SubmissionRow, ...]
    late: tuple[SubmissionRow, ...]
    hung: tuple[ExerciseOutcome, ...]
    slowest: tuple[ExerciseOutcome, ...]
    longest: tuple[SubmissionRow, ...]
    changes: tuple[GradeChange, ...]


def figures(results: ClassResults) -> ClassFigures:
    """Return the figures of a class."""
    rows = results.rows
    graded = tuple(row for row in rows if row.state == GradingState.GRADED)
    scores = [row.score for row in graded]
    found = [ExerciseOutcome(row, verdict) for row in rows for verdict in row.exercises]
    answered = [f for f in found if f.verdict.seconds > 0]
    return ClassFigures(
        graded=graded,
        bins=_bins([results.share(row) for row in graded]),
        mean=statistics.fmean(scores) if scores else None,
        median=statistics.median(scores) if scores else None,
        exercises=tuple(_exercise(asked, rows) for asked in results.asked),
        faults=tuple(row for row in rows if row.fault),
        errors=tuple(f for f in found if f.verdict.status is Status.ERROR),
        skipped=tuple(f for f in found if f.verdict.status is Status.SKIPPED),
        unsafe=tuple(row for row in rows if row.unsafe),
        nothing=tuple(row for row in rows if row.state == GradingState.NOTHING),
        waiting=tuple(row for row in rows if row.state == GradingState.WAITING),
        late=tuple(row for row in rows if row.lateness is not None),
        hung=tuple(f for f in found if hung(f.verdict)),
        slowest=tuple(sorted(answered, key=lambda f: -f.verdict.seconds)[:_SLOWEST]),
        longest=tuple(sorted((r for r in rows if r.seconds), key=lambda r: -r.seconds)[:_SLOWEST]),
        changes=tuple(change for row in rows for change in changes(row)),
    )


def changes(row: SubmissionRow) -> list[GradeChange]:
    """Return the verdicts of a submission that differ from an earlier grading's."""
    found = []
    for now in row.exercises:
        before = row.earlier.get(now.name)
        if before is not None and _comparable(before) != _comparable(now):
            found.append(GradeChange(row, before, now))
    return found


def _comparable(verdict: ExerciseVerdict) -> tuple[object, ...]:
    return verdict.status, verdict.score, verdict.max_score, verdict.diagnosis


def _exercise(asked: RequestedExercise, rows: Iterable[SubmissionRow]) -> ExerciseFigures:
    found = [
        ExerciseOutcome(row, row.by_name[asked.name]) for row in rows if asked.name in row.by_name
    ]
    verdicts = [one.verdict for one in found]
    outcomes = Counter(look_of(verdict).value for verdict in verdicts)
    unjudged = outcomes["error"] + outcomes["skipped"]
    seconds = [v.seconds for v in verdicts if v.seconds > 0]
    return ExerciseFigures(
        asked=asked,
        judged=len(verdicts) - unjudged,
        passed=outcomes["passed"],
        half=outcomes["half"],
        partly=outcomes["partly"],
        hung=outcomes["hung"],
        failed=outcomes["failed"],
        empty=outcomes["empty"],
        unjudged=unjudged,
        mistakes=_mistakes(found),
        median=statistics.median(seconds) if seconds else 0.0,
        longest=max(seconds, default=0.0),
    )


def _mistakes(outcomes: Iterable[ExerciseOutcome]) -> tuple[MistakeCount, ...]:
    """Return the most frequent mistakes first; hints tell those of one diagnosis apart."""
    found: dict[tuple[Diagnosis, str], list[SubmissionRow]] = {}
    for row, verdict in ((one.row, one.verdict) for one in outcomes):
        if verdict.status is Status.FAILED and verdict.diagnosis is not None:
            hint = "" if look_of(verdict) is Look.UNTOUCHED else verdict.hint
            found.setdefault((verdict.diagnosis, hint), []).append(row)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(MistakeCount(*what, tuple(rows)) for what, rows in ordered[:_MOST])


def _bins(shares: Sequence[float]) -> tuple[Bin, ...]:
    # a share of 0.7 belongs to the bin that begins there, even if rounding puts it just below
    counts = Counter(max(0, min(int(share * _BINS + 1e-9), _BINS - 1)) for share in shares)
    width = 100 // _BINS
    return tuple(Bin(i * width, (i + 1) * width, counts[i]) for i in range(_BINS))


# ``class.html``: one page that shows an instructor the whole class. ---------------

MARKS = {look.value: look.mark for look in Look}

WORDS = {look.value: look.word for look in Look}

#: The sign of what a person has decided.
BY_HAND = "✎"

#: The filters of the table of students.
_TAGS = {
    "error": "where the grader failed",
    "waiting": "not judged yet",
    "unsafe": "graded without a sandbox",
    "late": "handed in late",
    "decided": "decided by hand",
    "hung": "who hung",
    "changed": "changed since the earlier grading",
    "full": "with all points",
    "nothing": "with nothing handed in",
    "notes": "with remarks on files",
}


@dataclass(frozen=True)
class _Cell:
    """A cell of the table of students: one exercise."""

    exercise: str
    kind: str
    mark: str
    word: str
    order: float


@dataclass(frozen=True)
class _Line:
    """A line of the table of students."""

    row: SubmissionRow
    about: str
    tags: str
    badges: list[tuple[str, str]]
    cells: list[_Cell]
    order: float


def class_page(results: ClassResults, pairs: Sequence[Pair] = ()) -> str:
    """Return the page, which needs no other file.

    Its links lead to ``feedback/``, and to ``similar.html`` if there are pairs.
    """
    seen = figures(results)
    noted = [row for row in results.rows if row.notes]
    lines = [_line(results, row) for row in results.rows]
    used = {tag for line in lines for tag in line.tags.split()}
    guesses = doubts(results)
    serious = seen.faults or seen.errors or seen.unsafe or seen.waiting
    attention = bool(serious or seen.skipped or guesses or seen.late or noted)
    return page(
        "class.html.j2",
        script="tables.js",
        results=results,
        figures=seen,
        attention=attention,
        noted=noted,
        guesses=guesses,
        decided=[row for row in results.rows if row.decisions],
        commands=commands,
        skipped_by_reason=_by_reason(seen.skipped),
        pairs=len(_known(results, pairs)),
        highest=max((bin_.count for bin_ in seen.bins), default=0) or 1,
        sections=_sections(results, seen, attention),
        chapters=_chapters(results),
        lines=lines,
        tags=[(tag, name) for tag, name in _TAGS.items() if tag in used],
        outcomes=_outcomes,
        outcome=lambda verdict: look_of(verdict).value,
        marks=MARKS,
        words=WORDS,
    )


def _sections(results: ClassResults, seen: ClassFigures, attention: bool) -> list[tuple[str, str]]:
    decided = results.not_here or any(row.decisions for row in results.rows)
    return [
        *([("attention", "Look at these first")] if attention else []),
        ("scores", "Scores"),
        ("exercises", "Exercises"),
        *([("hung", "Who hung")] if seen.hung else []),
        *([("changes", "Changes")] if seen.changes else []),
        *([("decided", "Decided by hand")] if decided else []),
        *([("slow", "Slowest")] if seen.longest else []),
        ("students", "Students"),
    ]


def commands(results: ClassResults, row: SubmissionRow) -> list[str]:
    """Return the commands to copy for one row: to judge it again, and to decide by hand."""
    place = " ".join(map(shlex.quote, (results.folder or "RESULTS", row.key)))
    return [
        f"python -m grader reproduce {place} EXERCISE",
        f'python -m grader mark {place} EXERCISE --points P --why "…"',
    ]


def _by_reason(skipped: Iterable[ExerciseOutcome]) -> dict[str, list[ExerciseOutcome]]:
    found: dict[str, list[ExerciseOutcome]] = {}
    for item in skipped:
        found.setdefault(item.verdict.message, []).append(item)
    return found


def _chapters(results: ClassResults) -> list[tuple[str, int]]:
    return [
        (chapter, len(list(group)))
        for chapter, group in groupby(results.asked, key=lambda asked: asked.chapter)
    ]


def _outcomes(exercise: ExerciseFigures) -> list[tuple[str, int]]:
    return [
        ("passed", exercise.passed),
        ("half", exercise.half),
        ("partly", exercise.partly),
        ("failed", exercise.failed),
        ("hung", exercise.hung),
        ("empty", exercise.empty),
    ]


def _line(results: ClassResults, row: SubmissionRow) -> _Line:
    waited = sum(map(hung, row.exercises))
    changed = changes(row)
    unscored = bool(row.fault) and not row.exercises
    full = row.state == GradingState.GRADED and row.score >= results.points_of(row)
    present = {
        "error": row.state == GradingState.ERROR,
        "waiting": row.state == GradingState.WAITING,
        "late": row.lateness is not None,
        "decided": bool(row.decisions),
        "unsafe": row.unsafe,
        "hung": waited > 0,
        "changed": bool(changed),
        "full": full,
        "nothing": row.state == GradingState.NOTHING,
        "notes": bool(row.notes),
    }
    badges = []
    if row.unsafe:
        badges.append(("failed", "⚠ no sandbox"))
    if row.lateness is not None:
        badges.append(("skipped", f"late −{points(row.penalty)}" if row.penalty else "late"))
    if row.decisions:
        badges.append(("decided", f"{BY_HAND} by hand {len(row.decisions.all())} ×"))
    if waited:
        badges.append(("hung", f"{MARKS['hung']} hung {waited} ×"))
    if changed:
        badges.append(("skipped", f"changed {len(changed)} ×"))
    return _Line(
        row,
        " · ".join(filter(None, (row.number, row.email))),
        " ".join(tag for tag, holds in present.items() if holds),
        badges,
        [_cell(row, asked.name) for asked in results.asked],
        -1.0 if unscored else row.score,
    )


def _cell(row: SubmissionRow, exercise: str) -> _Cell:
    verdict = row.by_name.get(exercise)
    if row.is_excused(exercise):
        return _Cell(exercise, "decided", "ex", GradingState.EXCUSED, -1.0)
    if exercise in row.by_hand:
        score = row.by_hand[exercise]
        word = f"by hand; judged: {'none' if verdict is None else points(verdict.score)}"
        return _Cell(exercise, "decided", f"{BY_HAND} {points(score)}", word, score)
    if exercise in row.waiting:
        return _Cell(exercise, Look.SKIPPED.value, "…", GradingState.WAITING, -1.0)
    if verdict is None:
        return _Cell(exercise, "", "", "", -1.0)
    look = look_of(verdict)
    kind, mark = look.value, look.mark
    if 0 < verdict.score < verdict.max_score:
        mark += f" {points(verdict.score)}"
    word = verdict.diagnosis.words if verdict.diagnosis else WORDS[kind]
    return _Cell(exercise, kind, mark, word, verdict.score)


# ``similar.html``: pairs of submissions to compare. -------------------------------


def similar_page(results: ClassResults, pairs: Sequence[Pair]) -> str:
    """Return the page of similar pairs; its links lead to ``feedback/``."""
    rows = {row.key: row for row in results.rows}
    return page("similar.html.j2", results=results, pairs=_known(results, pairs), rows=rows)


def _known(results: ClassResults, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of which no submission has been withdrawn."""
    keys = {row.key for row in results.rows}
    return [pair for pair in pairs if pair.first in keys and pair.second in keys]


# ``feedback/<key>.html``: the page for one student, without anything of the others. ----
#
# The inputs that a class is judged with are drawn from one seed, so a resubmission meets the same
# ones again.  A student who knew the seed could have ``check --seed`` show all of them, hand in a
# table of answers, and tell the others.  So the page has the command that repeats a verdict only
# after the deadline and the last extension, and where late work is taken once that is worth
# nothing any more.  Where there is no such time the page never has it, and the instructor,
# whom ``reproduce`` tells the command, decides.  The page does show the case that leads a verdict,
# since that is what a student learns from.


def feedback(results: ClassResults, row: SubmissionRow) -> str:
    """Return one student's page, which needs no other file."""
    before = {change.now.name: change.before for change in changes(row)}
    counts = Counter(look_of(verdict).value for verdict in row.exercises)
    shows = results.assignment.shows
    shown = {name: as_shown(verdict, shows) for name, verdict in row.by_name.items()}
    missing = [
        asked
        for asked in results.asked
        if asked.name not in row.by_name and asked.name not in row.waiting
    ]
    counts["empty"] += len(missing)
    # where the grader failed altogether, the page lists no exercises as missing
    asked_of = () if row.fault and not row.exercises else results.asked
    return page(
        "feedback.html.j2",
        results=results,
        row=row,
        outcomes=[(kind, counts[kind]) for kind in MARKS if counts[kind]],
        chapters=[
            (chapter, [(a, shown.get(a.name), before.get(a.name)) for a in group])
            for chapter, group in groupby(asked_of, key=lambda asked: asked.chapter)
        ],
        case_kind=_case_kind,
        case_result=_result,
        words_of=lambda name: [
            row.words_of(one) for one in row.decisions.all() if one.exercise == name
        ],
        seed=next((verdict.seed for verdict in row.exercises if verdict.seed), None),
        marks=MARKS,
        words=WORDS,
    )


def _result(case: CaseVerdict) -> str:
    if not case.judged:
        return "not run"
    return in_words(case.diagnosis) if case.diagnosis else str(case.status)


def _case_kind(case: CaseVerdict) -> str:
    if not case.judged:
        return "empty"
    if hung(case):
        return "hung"
    return str(case.status)


# The archive of all feedback pages. ------------------------------------------------
#
# A page is named so that people and platforms find whose it is.
#
# - Canvas takes comments back by "Upload Submissions" and the names of its own download,
#   ``<name>_<user>_<upload>_<file>`` (``infer_comment_context_from_filename`` in
#   https://github.com/instructure/canvas-lms).
# - Moodle takes feedback files back by "Upload multiple feedback files in a zip":
#   ``<full name>_<participant>_assignfeedback_file_<file>`` (``mod/assign/feedback/file/
#   importziplib.php`` in https://github.com/moodle/moodle), where the assignment has the feedback
#   type Feedback files.
# - Any other page is named after the student.

#: Characters that a file name may not have somewhere, or that separate the parts of one.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\\\:*?"<>|_\ud800-\udfff]+')

#: Characters of a student's name in a file's.
_LONGEST = 60

#: The earliest time that a zip can store, so that the same pages make the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)


def feedback_zip(results: ClassResults) -> bytes:
    """Return the archive of all pages whose score is final."""
    names = feedback_names(results)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in results.rows:
            if not results.ungraded(row):
                entry = zipfile.ZipInfo(names[row.key], _WHEN)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o600 << 16
                archive.writestr(entry, feedback(results, row))
    return buffer.getvalue()


def feedback_names(results: ClassResults) -> dict[str, str]:
    """Return the name of each page in the archive, by the submission's key."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for row in results.rows:
        name = _name(row)
        if _folded(name) in taken:
            name = f"{name.removesuffix('.html')} ({row.key}).html"
        taken.add(_folded(name))
        found[row.key] = name
    return found


def _name(row: SubmissionRow) -> str:
    student = _UNSAFE.sub(" ", row.student)[:_LONGEST].strip(" .") or row.key
    if row.platform == "canvas" and row.number and row.upload:
        return f"{student}_{row.number}_{row.upload}_feedback.html"
    if row.platform == "moodle" and row.number:
        return f"{student}_{row.number}_assignfeedback_file_feedback.html"
    return f"{student}.html"


def _folded(name: str) -> str:
    """Return a text that is equal for names that a file system may take for the same."""
    return unicodedata.normalize("NFC", name).casefold()


# The folder of results. -----------------------------------------------------------


def write(results: ClassResults, folder: Path, pairs: Sequence[Pair] = ()) -> None:
    """Write ``results/``, ``feedback/``, ``gradebook.csv``, ``class.html``, ``similar.html``.

    Every file is replaced as a whole, so that a reader finds the old one or the new
    one at any time.  The two files of a submission that was withdrawn since are
    removed, and so are unfinished files of a killed grader; nothing else in the
    folder is touched.
    """

    def put(name: str, data: bytes) -> None:
        replace_file(folder / name, data, 0o600)

    for row in results.rows:
        put(f"results/{row.key}.json", _json(row).encode())
        put(f"feedback/{row.key}.html", feedback(results, row).encode())
    put("gradebook.csv", gradebook(results))
    put("class.html", class_page(results, pairs).encode())
    put("similar.html", similar_page(results, pairs).encode())
    keys = {row.key for row in results.rows}
    _tidy(folder / "results", ".json", keys)
    _tidy(folder / "feedback", ".html", keys)
    _tidy(folder, "", keys)


def _json(row: SubmissionRow) -> str:
    """Return what ``check --json`` prints, and what a person has decided beside it."""
    if not row.decisions:
        return to_json(row.verdict())
    found = json.loads(to_json(row.verdict()))
    found["decided_score"] = row.score
    found["decisions"] = [
        {"kind": one.kind.value}
        | {
            name: getattr(one, name)
            for name in ("exercise", "points", "of", "judged", "until", "why", "by", "at")
        }
        for one in row.decisions.all()
    ]
    return json.dumps(found, ensure_ascii=False, indent=1)


def _tidy(folder: Path, ending: str, keys: set[str]) -> None:
    """Remove the files of submissions that are gone, and unfinished files."""
    for path in folder.iterdir():
        key = path.name.removesuffix(ending)
        gone = key != path.name and is_key(key) and key not in keys
        # a folder or a link of such a name was not written here
        if (gone or is_unfinished(path)) and stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
