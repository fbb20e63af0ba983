"""What Gradescope gives and takes: its export's metadata, results in its form, a zip that grades.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ describes the last two.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import yaml

import grader
from grader import __version__
from grader.classroom.assignment import UNTITLED, Assignment, RequestedExercise
from grader.classroom.results import ClassResults, SubmissionRow, as_shown
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.report.text import exercise_report
from headcount.core.errors import RequestError, UnreadableFile
from headcount.report import plain, visible

# The metadata file of Gradescope's export. ----------------------------------------
#
# "Export Submissions" gives a zip with ``submission_metadata.yml`` beside one
# folder per submission.  The file maps each folder's name to Ruby's symbols::
#
#     submission_123:
#       :submitters:
#       - :name: Ada Lovelace
#         :sid: '100'
#         :email: ada@example.org
#       :created_at: 2024-05-01 12:00:00.000000000 Z
#       :score: 3.5
#
# It is not documented; this is what programs read that work with it, such as
# otter-grader's ``GradescopeParser`` (``otter/metadata.py`` of its early versions)
# and others that look up ``[':submitters'][0][':name']``.
#
# It may hold all results of a class, and it may have been tampered with.  So it
# is read event by event, and only the submitters are kept.  Numbers stay text (a
# ``:sid:`` of ``007`` keeps its zeros), and aliases are not followed into lists.
# ``yaml.load`` and ``yaml.compose`` with libyaml's loaders are no replacement, not
# even with ``CBaseLoader``.  They recurse in C: a few bytes ``[[[[…``, 100,000 deep,
# end Python with a segmentation fault.  And they build a node for every value: 2 MB
# of ``[],[],…`` take 310 MB and 6.8 s, here 0.2 MB beyond the text and 2.3 s; 2 MB
# of honest results take 69 MB and 1.7 s, here 0.2 MB and 0.5 s (PyYAML 6.0.3).

#: Bytes of metadata that are read; 500 submissions with their results take less.
LARGEST_METADATA = 16 << 20

#: Levels of nesting that are accepted; Gradescope's files have about ten.
_DEEPEST = 64

#: Anchored texts that are kept for aliases.
_ANCHORS = 10_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Submitter:
    """One submitter of a Gradescope submission, and when it was handed in."""

    name: str | None = None
    sid: str | None = None
    email: str | None = None
    handed_in: datetime | None = None


def submitters(stream: BinaryIO) -> dict[str, tuple[Submitter, ...]]:
    """Return the submitters of each submission, by the name of its folder.

    Raises:
        UnreadableFile: the stream holds no such metadata; the message completes
            "submission_metadata.yml …".
    """
    data = stream.read(LARGEST_METADATA + 1)
    if len(data) > LARGEST_METADATA:
        raise UnreadableFile(f"is larger than {LARGEST_METADATA >> 20} MB")
    try:
        found = _EventReader(data).read()
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it has characters that YAML does not allow"
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise UnreadableFile(f"is not YAML{where}: {problem}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"is not YAML: {error}") from None
    if not found:
        raise UnreadableFile("names no submissions; it should map each folder to its :submitters:")
    return found


class _EventReader:
    """Reads YAML's events once, keeping only the submitters, the depth and anchored texts."""

    def __init__(self, data: bytes) -> None:
        self._events: Iterator[Any] = yaml.parse(data, Loader=_LOADER)
        self._texts: dict[str, str] = {}
        self._depth = 0

    def read(self) -> dict[str, tuple[Submitter, ...]]:
        """Return the submitters by folder; nothing if the document is no mapping."""
        found: dict[str, tuple[Submitter, ...]] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingStartEvent):
                self._enter()
                for folder in self._keys():
                    found[folder] = self._submission()
                return found
            if isinstance(event, yaml.NodeEvent):
                return found
        return found

    def _submission(self) -> tuple[Submitter, ...]:
        people: list[Submitter] = []
        at: datetime | None = None
        if not self._begins_with(yaml.MappingStartEvent):
            return ()
        for name in self._keys():
            if name == ":submitters":
                people = self._people()
                continue
            event = self._next_event()
            if name == ":created_at":
                at = _moment(self._text(event))
            self._skip(event)
        return tuple(replace(one, handed_in=at) for one in people)

    def _people(self) -> list[Submitter]:
        people: list[Submitter] = []
        if not self._begins_with(yaml.SequenceStartEvent):
            return people
        while not isinstance(event := self._next_event(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                self._skip(event)
                continue
            texts = {}
            for name in self._keys():
                event = self._next_event()
                texts[name] = self._text(event)
                self._skip(event)
            one = Submitter(texts.get(":name"), texts.get(":sid"), texts.get(":email"))
            if one != Submitter():
                people.append(one)
        return people

    def _keys(self) -> Iterator[str]:
        """Yield the keys of the mapping that has begun; the caller reads each value."""
        while not isinstance(event := self._next_event(), yaml.MappingEndEvent):
            name = self._text(event)
            self._skip(event)
            if name is None:
                self._skip(self._next_event())
            else:
                yield name

    def _next_event(self) -> Any:
        event = next(self._events)
        if isinstance(event, yaml.CollectionStartEvent):
            self._enter()
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        return event

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} deep")

    def _begins_with(self, kind: type) -> bool:
        """Return whether the next value begins with such an event, and skip it otherwise."""
        event = self._next_event()
        if isinstance(event, kind):
            return True
        self._skip(event)
        return False

    def _skip(self, event: Any) -> None:
        """Skip the rest of the value that begins with this event."""
        if isinstance(event, yaml.CollectionStartEvent):
            outside = self._depth - 1
            while self._depth > outside:
                self._text(self._next_event())

    def _text(self, event: Any) -> str | None:
        if isinstance(event, yaml.AliasEvent):
            return self._texts.get(event.anchor)
        if not isinstance(event, yaml.ScalarEvent):
            return None
        text = str(event.value)
        if event.anchor and len(self._texts) < _ANCHORS:
            self._texts[event.anchor] = text
        null = event.implicit[0] and text in ("", "~", "null")
        return None if null else text


def _moment(text: str | None) -> datetime | None:
    """Return a time as Ruby writes it, such as ``2024-05-01 12:00:00.000000000 Z``, or None."""
    found = re.fullmatch(
        r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d*)? ?(?:Z|UTC|([-+]\d\d):?(\d\d))", text or ""
    )
    if found is None:
        return None
    zone = f"{found[3]}:{found[4]}" if found[3] else "+00:00"
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
    except ValueError:
        return None


# ``results.json`` of one student. -------------------------------------------------
#
# Its ``output`` is shown to the student as plain text (``text``: no HTML, Markdown or ANSI
# is interpreted).  Seeds are not in it, for the reason that :mod:`grader.classroom.pages`
# gives above the feedback page.

#: Gradescope's words for the time at which students see a test, or printed output.
VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")


def gradescope(
    results: ClassResults, row: SubmissionRow, visibility: str = "visible"
) -> dict[str, Any]:
    """Return one student's ``results.json``.

    An exercise that the grader failed at, or could not judge, is a test without points
    whose output says so, since 0 points would hide it.  Gradescope has one maximum for
    all students, so the score is the student's share of all points.

    Args:
        results: the class.
        row: one of its submissions.
        visibility: when students see the tests, one of :data:`VISIBILITIES`.

    Raises:
        ValueError: Gradescope does not know the visibility.
    """
    if visibility not in VISIBILITIES:
        raise ValueError(f"visibility is one of {', '.join(VISIBILITIES)}, not {visibility!r}")
    chapters: dict[str, int] = {}
    tests = []
    for asked in results.asked:
        chapters[asked.chapter] = chapters.get(asked.chapter, 0) + 1
        number = f"{asked.chapter.partition('_')[0]}.{chapters[asked.chapter]}"
        verdict = row.by_name.get(asked.name)
        test: dict[str, Any] = {"name": asked.name, "number": number, "tags": [asked.chapter]}
        if verdict is None:
            test |= _scored(0.0, asked.points, "failed") | {"output": "not handed in"}
        else:
            test |= _judged(as_shown(verdict, results.assignment.shows))
        test |= _decision_fields(row, asked, test)
        tests.append(test | {"output_format": "text", "visibility": visibility})
    return {
        "score": round(results.share(row) * results.points, 3),
        "output": "\n".join(_remarks(row)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": visibility,
        # what the grader prints is for the instructor
        "stdout_visibility": "hidden",
        "execution_time": round(row.seconds, 3),
        "tests": tests,
        "extra_data": {
            "grader_version": __version__,
            "status": row.state,
            "unsafe": row.unsafe,
            "max_score": results.points_of(row),
        },
    }


def to_json(result: dict[str, Any]) -> str:
    """Return the text of the file; lone surrogates, which UTF-8 cannot encode, are escaped."""
    return json.dumps(result, ensure_ascii=True, indent=1)


def _judged(verdict: ExerciseVerdict) -> dict[str, Any]:
    found: dict[str, Any] = {"output": plain(exercise_report(verdict))}
    if verdict.diagnosis:
        found["extra_data"] = {"diagnosis": verdict.diagnosis.value}
    if verdict.status in (Status.PASSED, Status.FAILED):
        found |= _scored(verdict.score, verdict.max_score, verdict.status.value)
    return found


def _decision_fields(
    row: SubmissionRow, asked: RequestedExercise, test: dict[str, Any]
) -> dict[str, Any]:
    """Return what a person has decided about an exercise, in the fields of its test."""
    decision = row.decisions.points.get(asked.name) or row.decisions.excuses.get(asked.name)
    if decision is None:
        return {}
    output = f"{visible(row.words_of(decision))}\n\n{test['output']}"
    if row.is_excused(asked.name):
        return {"output": output, "score": 0.0, "max_score": 0.0, "status": "passed"}
    score = row.by_hand[asked.name]
    status = "passed" if score >= asked.points else "failed"
    return {"output": output} | _scored(score, asked.points, status)


def _scored(score: float, points: float, status: str) -> dict[str, Any]:
    return {"score": score, "max_score": points, "status": status}


def _remarks(row: SubmissionRow) -> list[str]:
    found = []
    if row.fault:
        found.append(
            "The grader itself failed on this submission, so this is not your grade:"
            f" {visible(row.fault)}"
        )
    failed = [v.name for v in row.exercises if v.status is Status.ERROR and row.is_open(v.name)]
    if failed:
        found.append(
            f"The grader itself failed on {', '.join(failed)}; that is no fault of yours, and the"
            " score is not final."
        )
    skipped = [v.name for v in row.exercises if v.status is Status.SKIPPED and row.is_open(v.name)]
    if skipped:
        found.append(
            f"Not judged here, and not counted: {', '.join(skipped)}. The score is in proportion"
            " to the rest."
        )
    return found + [visible(note) for note in (*row.decided, *row.notes)]


# The autograder: a zip that grades with this grader. ------------------------------
#
# ``setup.sh`` runs once, when the image is built, with the zip's contents in
# ``/autograder/source``; ``run_autograder`` runs for each submission, reads
# ``/autograder/submission`` and has to write ``/autograder/results/results.json``.
#
# The zip holds the grader itself, so that Gradescope runs the version that was
# uploaded, and no newer one.  When the grader fails, no results are written and
# the script ends with an error: Gradescope then says that the autograder failed,
# instead of giving 0 points.
#
# Where Gradescope's containers cannot make a sandbox, the submission is graded
# without one: each has a container to itself, which ends with it.  The results
# then say ``unsafe``, since code in the container could reach the grader.

_HERE = "grader.classroom"

#: The files that installing headcount needs, besides its modules.
_ENGINES = tuple(f"headcount/{name}" for name in ("pyproject.toml", "README.md", "LICENSE"))

#: Files of the repository that installing the grader needs.
_NEEDED = ("LICENSE", "README.md", "pyproject.toml", "requirements.lock", *_ENGINES)

#: The earliest time that a zip can store, so that the same grader makes the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)

_SCRIPT, _FILE = 0o755, 0o644


def autograder(assignment: Assignment | None = None) -> bytes:
    """Return the zip, ready to upload under Configure Autograder.

    Args:
        assignment: what is due; without it, whatever is handed in is judged.  Lateness is
            Gradescope's own matter.

    Raises:
        RequestError: the grader does not run from a clone of its repository, which
            holds the files that installing it needs.
    """
    package = Path(grader.__file__).resolve().parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            # a shell does not take a carriage return for the end of a line
            script = resources.files(_HERE).joinpath("assets").joinpath(name).read_bytes()
            _add(archive, name, script.replace(b"\r\n", b"\n"), _SCRIPT)
        if assignment is not None and assignment.exercises:
            _add(archive, "assignment.toml", _as_toml(assignment).encode(), _FILE)
        for name in _NEEDED:
            if not (package.parent / name).is_file():
                raise RequestError(
                    f"{package.parent} has no {name}; make the zip from a clone of the repository"
                )
            _add(archive, f"gather-round/{name}", (package.parent / name).read_bytes(), _FILE)
        engine = package.parent / "headcount" / "src" / "headcount"
        for path in (*_sources(package), *_sources(engine)):
            name = path.relative_to(package.parent).as_posix()
            _add(archive, f"gather-round/{name}", path.read_bytes(), _FILE)
    return buffer.getvalue()


def _as_toml(assignment: Assignment) -> str:
    """Return an ``assignment.toml`` with what is due, its worth, and what students see."""
    # a basic string of TOML has the escapes of one of JSON
    names = ", ".join(json.dumps(asked.name) for asked in assignment.exercises)
    title = json.dumps(visible(assignment.title) or UNTITLED, ensure_ascii=False)
    lines = [
        f"title = {title}",
        f"exercises = [{names}]",
        f"students_see = {json.dumps(assignment.shows)}",
        "[weights]",
        *(f"{asked.name} = {asked.points!r}" for asked in assignment.exercises),
    ]
    return "".join(f"{line}\n" for line in lines)


def _sources(package: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder) / name for name in sorted(files) if not name.startswith("."))


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, or the mode below means nothing
    entry.external_attr = mode << 16
    archive.writestr(entry, data)
