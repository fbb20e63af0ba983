"""Submissions as they really arrive: a folder, a file or an archive.

:func:`collect` takes whatever an instructor has downloaded and says which
student handed in which files.  Every student gets a row, with the reason where
there is nothing to grade.  :mod:`grader.classroom.layouts` says what layouts
are known, :mod:`grader.classroom.names` which of two files is the newer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from grader.classroom.archives import unpack
from grader.classroom.layouts import sort_out
from grader.classroom.names import age, key, lookalike
from grader.classroom.submission_files import StudentFiles, gather
from grader.classroom.tree import (
    CLASS,
    STUDENT,
    Bounds,
    DiskFolder,
    ExtractionDir,
    File,
    Folder,
    MemoryFolder,
    Meter,
    is_archive,
    is_code,
    open_file,
    read_whole,
)
from grader.core.errors import RequestError, UnreadableFile

__all__ = ["Arrivals", "StudentSubmission", "SubmittedFile", "collect", "newer"]


@dataclass(frozen=True)
class SubmittedFile:
    """A file of a submission.

    Attributes:
        label: its path within the submission, for people; an archive it was
            in is a part of it.
        upload: the number that Canvas gave to its upload, or 0.
        file: where its contents are.
    """

    label: str
    upload: int
    file: File

    def read(self) -> bytes:
        """Its contents, read anew every time.

        Raises:
            UnreadableFile: it cannot be read, or has grown too large.
        """
        return read_whole(self.file, self.label)


@dataclass(frozen=True)
class StudentSubmission:
    """What one student handed in.

    Attributes:
        key: a name for it that is safe as a file name everywhere, the same in
            every run, and no other student's.
        student: the student's name, for people.  Names may be equal.
        email: the student's address, where it is known.
        sid: the number or login that the learning platform knows, where it is.
        files: what can be graded, oldest first.
        problems: what is wrong with the submission, in sentences.
    """

    key: str
    student: str
    email: str | None
    sid: str | None
    files: tuple[SubmittedFile, ...]
    problems: tuple[str, ...]

    def digest(self) -> str:
        """A hash of labels and contents: equal while nothing has changed.

        A file that cannot be read counts with the reason.
        """
        total = hashlib.sha256()
        for file in self.files:
            try:
                contents = b"=" + file.read()
            except UnreadableFile as error:
                contents = b"!" + str(error).encode()
            for part in (file.label.encode(), contents):
                total.update(len(part).to_bytes(8, "big") + part)
        return total.hexdigest()


def newer(one: SubmittedFile, other: SubmittedFile) -> SubmittedFile:
    """The newer of two files of a student, by name (see :mod:`grader.classroom.names`)."""
    return max(one, other, key=lambda file: age(file.label, file.upload))


class Arrivals:
    """All submissions; a context manager, which owns what was unpacked.

    Attributes:
        submissions: one for every student, in the order of names.
        problems: what is wrong, and about no student in particular.
    """

    def __init__(
        self,
        submissions: tuple[StudentSubmission, ...],
        problems: tuple[str, ...],
        resources: contextlib.ExitStack,
    ) -> None:
        self.submissions = submissions
        self.problems = problems
        self._resources = resources

    def __enter__(self) -> Arrivals:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete what was unpacked; files cannot be read any more."""
        self._resources.close()


def collect(source: Path, whole: Bounds = CLASS, each: Bounds = STUDENT) -> Arrivals:
    """Find all submissions in a folder, a file or an archive.

    Args:
        source: what the instructor named; a link here is followed, others never.
        whole: what an archive of the whole class may cost.
        each: what a student's own archives may cost together.

    Raises:
        RequestError: there is no such thing, or nothing in it.
    """
    resources = contextlib.ExitStack()
    try:
        extraction_dir = resources.enter_context(ExtractionDir(whole.kept))
        root, archive, problems = _root(source, extraction_dir, whole, resources)
        try:
            piles, more = sort_out(root, archive)
        except UnreadableFile as error:
            raise RequestError(f"{source} {error}") from None
        problems += more
        if not piles:
            why = f": {'; '.join(problems)}" if problems else ""
            raise RequestError(
                f"{source} holds no submissions{why}; expected is a folder per student, or a"
                " download of Canvas, Moodle, Gradescope or nbgrader"
            )
        handed = _distinct([_handed(pile, extraction_dir, each) for pile in piles])
    except BaseException:
        resources.close()
        raise
    handed.sort(key=lambda one: (one.student.casefold(), one.student, one.key))
    return Arrivals(tuple(handed), tuple(problems), resources)


def _root(
    source: Path, extraction_dir: ExtractionDir, bounds: Bounds, resources: contextlib.ExitStack
) -> tuple[Folder, bytes | None, list[str]]:
    """The tree to look at; if it is an archive's, its name and its problems."""
    try:
        path = source.resolve(strict=True)
        name = os.fsencode(path.name)
        if path.is_dir():
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            resources.callback(os.close, handle)
            return DiskFolder(handle, ()), None, []
        with open_file(path) as stream:
            if is_archive(name):
                root, problems = unpack(stream, name, extraction_dir, Meter(bounds))
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


def _handed(pile: StudentFiles, extraction_dir: ExtractionDir, bounds: Bounds) -> StudentSubmission:
    files, problems = gather(pile, extraction_dir, bounds)
    return StudentSubmission(
        key(pile.identity, pile.student),
        pile.student,
        pile.email,
        pile.sid,
        tuple(SubmittedFile(found.label, found.upload, found.file) for found in files),
        problems,
    )


def _distinct(handed: list[StudentSubmission]) -> list[StudentSubmission]:
    """The same, with a note on names that people may take for one."""
    alike = defaultdict(list)
    for one in handed:
        alike[lookalike(one.student)].append(one)
    distinct = []
    for one in handed:
        others = len(alike[lookalike(one.student)]) - 1
        note = f"{others} more by a name that looks the same: they are graded apart"
        distinct.append(replace(one, problems=(*one.problems, note)) if others else one)
    assert len({one.key for one in distinct}) == len(handed), "two students with one key"
    return distinct
