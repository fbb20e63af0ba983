"""Submissions as they really arrive: which student handed in which files.

:func:`collect` takes whatever an instructor has downloaded, a folder, a file or an
archive, and finds the students in it by the layouts of the learning platforms
(see :mod:`grader.classroom.layouts`).  Every student gets a row, with the reason where
there is nothing to grade.  :mod:`grader.classroom.names` says which of two files is the newer.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.classroom.assignment import Lateness
from grader.classroom.layouts import (
    FOREIGN,
    LAYOUTS,
    LayoutQuestion,
    StudentFiles,
    SubmittedNode,
    refuse_class_inside,
    sort_out,
)
from grader.classroom.messages import bounded
from grader.classroom.names import age, few, key, lookalike, oddities, raw, shown, without_marks
from grader.classroom.untrusted_files import (
    CLASS,
    DEEPEST,
    STUDENT,
    ArchiveUsage,
    Bounds,
    DiskFolder,
    ExtractionDir,
    File,
    Folder,
    MemoryFolder,
    Node,
    UnopenedEntry,
    describe,
    is_archive,
    is_code,
    is_junk,
    open_file,
    read_whole,
    unpack,
)
from headcount.core.errors import RequestError, UnreadableFile
from headcount.core.files import LARGEST_FILE

#: Files of one submission that are kept, and entries that are visited to find them.
MOST_FILES, MOST_ENTRIES = 500, 20_000

#: Files in which an answer may have been handed in that nothing can run.
_TEXTS = (
    *(b".pdf", b".html", b".htm", b".doc", b".docx", b".odt", b".rtf", b".tex", b".pages"),
    *(b".c", b".cc", b".cpp", b".cu"),
)

#: Bytes that a student's files may have together when they are judged.
_SOURCES = 2 * LARGEST_FILE


@dataclass(frozen=True)
class SubmittedFile:
    """A file of a submission.

    Attributes:
        label: its path within the submission, for people; the name of an archive
            that holds it is a part of the path.
        upload: the number that Canvas gave to its upload, or 0.
        file: the node that opens it.
        at: when it was handed in, where that is known.
    """

    label: str
    upload: int
    file: File
    at: datetime | None = None

    def read(self) -> bytes:
        """Return what it says, read anew every time; of a notebook all but its outputs.

        Raises:
            UnreadableFile: it cannot be read, or has grown too large.
        """
        return read_whole(self.file, self.label)


@dataclass(frozen=True)
class ReadFiles:
    """The files of a submission as they were at one time.

    Attributes:
        contents: label and contents of each that can be graded, oldest first; see
            :meth:`SubmittedFile.read`.
        hashes: label and SHA-256 of each file as it is, oldest first; the reason instead of the
            hash if it cannot be read.
        problems: sentences on those that are left out.
    """

    contents: tuple[tuple[str, bytes], ...]
    hashes: tuple[tuple[str, str], ...]
    problems: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of labels and contents, which changes when a file does."""
        total = hashlib.sha256()
        for part in itertools.chain.from_iterable(self.hashes):
            data = part.encode()
            total.update(len(data).to_bytes(8, "big") + data)
        return total.hexdigest()


@dataclass(frozen=True)
class StudentSubmission:
    """The submission of one student.

    Attributes:
        key: a name for it that is safe as a file name everywhere, the same in
            every run, and unique in the class.
        student: the student's name, for people.  Names may be equal.
        email: the student's address, where it is known.
        number: the student's number or login on the learning platform, where it is known.
        files: the files that can be graded, oldest first.
        problems: sentences that say what is wrong with the submission.
        platform: name of the platform's layout that ``number`` comes from, or an empty string.
        late: names of the files and folders that the platform marks as late.
        handed_in: when it was handed in, where that is known; without a time zone if the platform
            writes none.
        numbers: what else tells who the student is, with its kind, see :class:`RosterStudent`.
        only_in_roster: whether nothing has arrived, and only a roster says that there is a student.
    """

    key: str
    student: str
    email: str | None
    number: str | None
    files: tuple[SubmittedFile, ...]
    problems: tuple[str, ...]
    platform: str = ""
    late: tuple[str, ...] = ()
    handed_in: datetime | None = None
    numbers: tuple[tuple[str, str], ...] = ()
    only_in_roster: bool = False

    @property
    def upload(self) -> int:
        """The platform's number of the newest upload, or 0."""
        return max((file.upload for file in self.files), default=0)

    def time_of(self, labels: Collection[str]) -> datetime | None:
        """Return when the last of some of its files was handed in, as far as it is known."""
        times = [file.at for file in self.files if file.label in labels and file.at is not None]
        return max(times, default=self.handed_in)

    def read(self) -> ReadFiles:
        """Read its files, each once, the newest first until they are too much to grade."""
        contents: list[tuple[str, bytes]] = []
        hashes: list[tuple[str, str]] = []
        problems: list[str] = []
        left = _SOURCES
        for file in reversed(self.files):
            total = hashlib.sha256()
            try:
                data = read_whole(file.file, file.label, total.update)
            except UnreadableFile as error:
                problems.append(str(error))
                hashes.append((file.label, str(error)))
                continue
            hashes.append((file.label, total.hexdigest()))
            if len(data) <= left:
                left -= len(data)
                contents.append((file.label, data))
            else:
                problems.append(
                    f"{file.label} is left out: the files of a student may have"
                    f" {_SOURCES >> 20} MB in all, without the outputs of notebooks"
                )
        return ReadFiles(tuple(reversed(contents)), tuple(reversed(hashes)), bounded(problems))


# The files of one student. --------------------------------------------------------

#: A function that tells how late a student's work of a time is, or None if it is in time.
LatenessOf = Callable[[StudentFiles, datetime], Lateness | None]


def _submission(
    student: StudentFiles,
    extraction_dir: ExtractionDir,
    bounds: Bounds,
    lateness_of: LatenessOf | None,
) -> StudentSubmission:
    """Return a student's submission.

    Of several attempts at an assignment the newest counts that is in time; if none is, the newest
    that is worth points, and the newest of all if none is.
    """
    walk = _Walk(extraction_dir, bounds, student.is_stray)
    notes: list[str] = []
    by_assignment: dict[bytes, dict[datetime | None, list[SubmittedNode]]] = defaultdict(dict)
    for source in student.sources:
        by_assignment[source.assignment].setdefault(source.at, []).append(source)
    late: dict[datetime | None, Lateness] = {
        source.at: lateness
        for source in student.sources
        if lateness_of is not None
        and source.at is not None
        and (lateness := lateness_of(student, source.at)) is not None
    }
    layout = LAYOUTS[student.layout]
    worthless = {at for at, lateness in late.items() if lateness.taken >= 1}

    def rank(attempts: Collection[datetime | None]) -> tuple[Any, ...]:
        # what is in time is taken for newer than what is late
        return max((at not in late, at not in worthless, *_order(at)) for at in attempts)

    files: list[SubmittedFile] = []
    counted: list[datetime | None] = []
    try:
        for attempts in sorted(by_assignment.values(), key=rank):
            found, of = _counting_attempts(attempts, walk, layout.adds_up, late, notes)
            files += found
            counted += of
    except Exception as error:
        # whatever a student's files are, or do to the grader, costs that row alone, and is shown
        files, counted = [], []
        fault = f"the grader failed, not the submission: {type(error).__name__}: "
        walk.problems.append(f"{'' if isinstance(error, LayoutQuestion) else fault}{error}")
    problems = [*student.problems, *notes, *walk.problems]
    kept = list(_within_bounds(files, bounds, problems))
    names = ((path, path[-1].lower()) for path in walk.others)
    texts = [path for path, name in names if name.endswith(_TEXTS)]
    if not kept:
        problems.append(_why_no_file(walk, bool(student.sources)))
    elif texts:
        problems.append(f"no .py or .ipynb file, and not graded: {few(list(map(_named, texts)))}")
    return StudentSubmission(
        key(student.identity, student.student),
        student.student,
        student.email,
        student.sid,
        tuple(reversed(kept)),
        bounded(dict.fromkeys(problems)),
        layout.name if layout.is_platform else "",
        tuple(dict.fromkeys(student.late)),
        max((at for at in counted if at is not None), default=None),
    )


def _order(at: datetime | None) -> tuple[bool, Any]:
    """Return a key that sorts attempts from old to new; one without a date is the oldest."""
    return at is not None, at


def _counting_attempts(
    attempts: dict[datetime | None, list[SubmittedNode]],
    walk: _Walk,
    adds_up: bool,
    late: Mapping[datetime | None, Lateness],
    notes: list[str],
) -> tuple[list[SubmittedFile], list[datetime | None]]:
    """Return the files of the attempts at one assignment that count, oldest first, and note it.

    That is the newest attempt that has any and is not late; if there is none, the newest late one
    that is worth points, or else the newest; and where attempts add up, those files of older ones
    of which none by the same name came later.  The times of the attempts that count come with them.
    """
    kept: list[SubmittedFile] = []
    later: set[str] = set()
    counted: list[datetime | None] = []
    worthless = {attempt for attempt, lateness in late.items() if lateness.taken >= 1}
    newest_first = sorted(attempts, key=_order, reverse=True)
    # sorting keeps the order of those that are alike
    for attempt in sorted(newest_first, key=lambda at: (at in late, at in worthless)):
        if kept and (not adds_up or attempt in late):
            break
        start = len(walk.found)
        for source in attempts[attempt]:
            walk.visit(source.node, source.path, source.upload, inside=False, depth=0)
        dated = (replace(file, at=attempt) for file in walk.found[start:])
        found = sorted(dated, key=lambda file: age(file.label, file.upload))
        new = [file for file in found if without_marks(_own_name(file.label)) not in later]
        later.update(without_marks(_own_name(file.label)) for file in new)
        kept[:0] = new
        if new:
            counted.append(attempt)
    if len(attempts) > 1:
        notes.append(_which_counts(newest_first, counted, adds_up, late.keys(), worthless))
    return kept, counted


def _which_counts(
    attempts: list[datetime | None],
    counted: list[datetime | None],
    adds_up: bool,
    late: Set[datetime | None],
    worthless: Set[datetime | None],
) -> str:
    """Return the note that says which of several attempts are graded."""
    text = f"handed in {len(attempts)} times"
    if not counted:
        return text
    newest = counted[0]
    before = set(attempts[: attempts.index(newest)])
    if adds_up and len(counted) > 1:
        text += f": the files of {' and '.join(map(_date, counted))} are graded"
        text += ", and of equal names the newest"
    else:
        if not before:
            which = "the newest"
        elif newest not in late and before <= late:
            which = "the newest in time"
        elif before <= worthless:
            which = "the newest that is worth points"
        else:
            which = "the newest with a file to grade"
        text += f": {which}, of {_date(newest)}, is graded"
    passed_over = [_date(attempt) for attempt in attempts if attempt not in counted]
    return f"{text}; not graded: {', '.join(passed_over)}" if passed_over else text


def _date(attempt: datetime | None) -> str:
    return str(attempt or "an unknown date")


def _own_name(label: str) -> str:
    """Return a file's own name without its ending."""
    name = label.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _within_bounds(
    files: list[SubmittedFile], bounds: Bounds, problems: list[str]
) -> Iterator[SubmittedFile]:
    """Yield the newest files that are within the bounds, newest first."""
    count = size = 0
    for found in reversed(files):
        if found.file.size > bounds.file:
            problems.append(f"{found.label} is larger than {bounds.file >> 20} MB; it is left out")
        elif count >= MOST_FILES or size + found.file.size > bounds.kept:
            problems.append(
                f"there are more than {MOST_FILES} files or {bounds.kept >> 20} MB; the newest by"
                " name are graded"
            )
            return
        else:
            count += 1
            size += found.file.size
            yield found


def _why_no_file(walk: _Walk, has_sources: bool) -> str:
    if walk.others:
        return f"no .py or .ipynb file was handed in, but {few(list(map(_named, walk.others)))}"
    if has_sources and walk.problems:
        return "no .py or .ipynb file could be opened"
    return "no .py or .ipynb file was handed in"


def _named(path: tuple[bytes, ...]) -> str:
    """Return a path for a remark, where it is no longer than a single name."""
    return shown(raw(describe(path))) or "the folder"


class _Walk:
    """A walk through a student's files, folders and archives, which collects what it finds."""

    def __init__(self, extraction_dir: ExtractionDir, bounds: Bounds, is_stray: bool) -> None:
        self.extraction_dir = extraction_dir
        self.is_stray = is_stray
        self.usage = ArchiveUsage(bounds)  # many archives of a student share it
        self.found: list[SubmittedFile] = []
        self.problems: list[str] = []
        self.others: list[tuple[bytes, ...]] = []
        self.entries = 0

    def visit(
        self, node: Node, path: tuple[bytes, ...], upload: int, *, inside: bool, depth: int
    ) -> None:
        """Visit a node; ``inside`` an archive, further archives are not opened."""
        label = _named(path)
        if isinstance(node, UnopenedEntry):
            self.problems.append(f"{label} is {node.reason}")
        elif not isinstance(node, File):
            self._folder(node, path, upload, inside=inside, depth=depth)
        elif is_code(path[-1]):
            self.found.append(SubmittedFile(describe(path), upload, node))
        elif not is_archive(path[-1]):
            self.others.append(path)
            if path[-1].lower().endswith(FOREIGN):
                self.problems.append(f"{label} is not opened; a .zip or .tar.gz is needed")
        elif inside:
            self.problems.append(f"{label} is an archive in an archive; it is not opened")
        else:
            self._archive(node, path, upload, depth)

    def _folder(
        self, folder: Folder, path: tuple[bytes, ...], upload: int, *, inside: bool, depth: int
    ) -> None:
        label = _named(path)
        if depth > DEEPEST:
            self.problems.append(f"{label} is more than {DEEPEST} folders deep; it is not opened")
            return
        try:
            children = folder.children()
        except UnreadableFile as error:
            self.problems.append(f"{label} {error}")
            return
        if self.is_stray:
            refuse_class_inside(describe(path) or shown(folder.name), children)
        if any(child.name == b"pyvenv.cfg" for child in children):
            return  # a virtual environment, which holds no code of the student's
        for child in children:
            if is_junk(child.name):
                continue
            self.entries += 1
            if self.entries > MOST_ENTRIES:
                self.problems.append(
                    f"there are more than {MOST_ENTRIES} files and folders; the rest is not"
                    " looked at"
                )
                return
            self.visit(child, (*path, child.name), upload, inside=inside, depth=depth + 1)

    def _archive(self, file: File, path: tuple[bytes, ...], upload: int, depth: int) -> None:
        label = _named(path)
        try:
            with file.open() as stream:
                root, problems = unpack(stream, path[-1], self.extraction_dir, self.usage)
        except OSError as error:
            self.problems.append(f"{label} cannot be read: {error.strerror}")
            return
        self.problems.extend(f"{label} {problem}" for problem in problems)
        self._folder(root, path, upload, inside=True, depth=depth + 1)


# All submissions. -----------------------------------------------------------------


class Arrivals(contextlib.AbstractContextManager["Arrivals"]):
    """All submissions; a context manager that owns the unpacked files.

    Attributes:
        submissions: one for every student, in the order of names.
        problems: sentences about problems that concern no student in particular.
        layouts: the number of students that each layout has found, by its name.
    """

    def __init__(
        self,
        submissions: tuple[StudentSubmission, ...],
        problems: tuple[str, ...],
        layouts: dict[str, int],
        resources: contextlib.ExitStack,
    ) -> None:
        self.submissions = submissions
        self.problems = problems
        self.layouts = layouts
        self._resources = resources

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the unpacked files; no file can be read after that."""
        self._resources.close()


def collect(
    source: Path,
    whole: Bounds = CLASS,
    each: Bounds = STUDENT,
    layout: str | None = None,
    lateness_of: LatenessOf | None = None,
) -> Arrivals:
    """Find all submissions in a folder, a file or an archive.

    Args:
        source: the path that the instructor named; a link here is followed, others never.
        whole: bounds on an archive of the whole class.
        each: bounds on a student's own archives together.
        layout: the name of the layout, if the instructor has said it.
        lateness_of: tells how late an attempt is; without one, all are
            in time.

    Raises:
        RequestError: the path does not exist, or holds no submission.
        LayoutQuestion: it is not clear whose the files are.
    """
    resources = contextlib.ExitStack()
    try:
        extraction_dir = resources.enter_context(ExtractionDir(whole.kept))
        root, archive, problems = _submissions_tree(source, extraction_dir, whole, resources)
        is_file = not source.is_dir() and archive is None
        try:
            found = sort_out(root, source, archive, layout, is_file)
        except UnreadableFile as error:
            raise RequestError(f"{source} {error}") from None
        problems += found.problems
        if not found.students:
            why = f": {'; '.join(problems)}" if problems else ""
            known = ", ".join(one.title for one in LAYOUTS.values() if one.is_platform)
            raise RequestError(
                f"{source} holds no submissions{why}; expected a folder or a file for each"
                f" student, or {known}"
            )
        submissions = [
            _submission(one, extraction_dir, each, lateness_of) for one in found.students
        ]
        submissions = _distinct(submissions)
    except BaseException:
        resources.close()
        raise
    submissions.sort(key=lambda one: (one.student.casefold(), one.student, one.key))
    layouts = dict(Counter(student.layout for student in found.students))
    return Arrivals(tuple(submissions), tuple(problems), layouts, resources)


def _submissions_tree(
    source: Path, extraction_dir: ExtractionDir, bounds: Bounds, resources: contextlib.ExitStack
) -> tuple[Folder, bytes | None, list[str]]:
    """Return the tree of the submissions, and an archive's name and problems if it is one's."""
    try:
        path = source.resolve(strict=True)
        name = os.fsencode(path.name)
        if path.is_dir():
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            resources.callback(os.close, handle)
            return DiskFolder(handle, ()), None, []
        with open_file(path) as stream:
            if is_archive(name):
                root, problems = unpack(stream, name, extraction_dir, ArchiveUsage(bounds))
                return root, name, [f"{source.name} {problem}" for problem in problems]
            size = os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        raise RequestError(f"{source} does not exist") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"{source} cannot be read: {reason}") from None
    if not is_code(name):
        raise RequestError(
            f"{source} is no folder, no .py or .ipynb file and no archive"
            " (.zip, .tar, .tar.gz, .tar.bz2, .tar.xz)"
        )
    return MemoryFolder(b"", {name: File(name, size, lambda: open_file(path))}), None, []


def _distinct(submissions: list[StudentSubmission]) -> list[StudentSubmission]:
    """Add a problem to submissions whose students' names look the same."""
    alike = defaultdict(list)
    for one in submissions:
        alike[lookalike(one.student)].append(one)
    distinct = []
    for one in submissions:
        others = [other.student for other in alike[lookalike(one.student)] if other is not one]
        if others:
            note = f"{len(others)} more by a name that looks the same: they are graded apart"
            if odd := oddities(one.student, others):
                note += f"; only this one has {few(odd)}"
            one = replace(one, problems=(*one.problems, note))
        distinct.append(one)
    assert len({one.key for one in distinct}) == len(submissions), "two students with one key"
    return distinct
