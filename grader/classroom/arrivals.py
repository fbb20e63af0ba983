"""Submissions as they really arrive: which student handed in which files.

:func:`collect` takes whatever an instructor has downloaded, a folder, a file or an
archive, and finds the students in it by the layouts of the learning platforms.
Every student gets a row, with the reason where there is nothing to grade.
:mod:`grader.classroom.names` says which of two files is the newer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import yaml

from grader.classroom.names import age, key, lookalike, raw, shown
from grader.classroom.untrusted_files import (
    CLASS,
    DEEPEST,
    METADATA,
    STUDENT,
    Bounds,
    DiskFolder,
    ExtractionDir,
    File,
    Folder,
    MemoryFolder,
    Meter,
    Node,
    UnopenedEntry,
    describe,
    is_archive,
    is_code,
    is_junk,
    open_file,
    read_whole,
    stem,
    unpack,
)
from grader.core.errors import RequestError, UnreadableFile

__all__ = [
    "Arrivals",
    "GradableFile",
    "LARGEST_METADATA",
    "StudentFiles",
    "StudentSubmission",
    "SubmittedFile",
    "SubmittedNode",
    "Submitter",
    "collect",
    "gather",
    "newer",
    "sort_out",
    "submitters",
]


# The files of one student. --------------------------------------------------------

#: Files of one submission that are kept, and entries that are visited to find them.
MOST_FILES, MOST_ENTRIES = 500, 20_000

#: Other files that a problem names.
_NAMED = 3

_FOREIGN = (b".rar", b".7z")


@dataclass(frozen=True)
class SubmittedNode:
    """A node that belongs to a student, with its path for people and the upload's number."""

    node: Node
    path: tuple[bytes, ...] = ()
    upload: int = 0


@dataclass
class StudentFiles:
    """The files and folders of one student, before any of them is opened.

    Attributes:
        identity: the bytes that tell the student from all others.
        student: the name for people.
        email: the address, if the layout has it.
        sid: the number or login of the student, if the layout has it.
        sources: the student's files and folders.
        problems: problems that the layout shows already.
    """

    identity: bytes
    student: str
    email: str | None = None
    sid: str | None = None
    sources: list[SubmittedNode] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GradableFile:
    """A file that can be graded, with its path within the submission and the upload's number."""

    label: str
    file: File
    upload: int


def gather(
    student: StudentFiles, extraction_dir: ExtractionDir, bounds: Bounds = STUDENT
) -> tuple[tuple[GradableFile, ...], tuple[str, ...]]:
    """Return a student's gradable files, oldest first, and the submission's problems."""
    walk = _Walk(extraction_dir, bounds)
    for source in student.sources:
        walk.visit(source.node, source.path, source.upload, inside=False, depth=0)
    problems = [*student.problems, *walk.problems]
    files = sorted(walk.found, key=lambda found: age(found.label, found.upload))
    kept = list(_within(files, bounds, problems))
    if not kept:
        problems.append(_why_no_file(walk, bool(student.sources)))
    return tuple(reversed(kept)), tuple(dict.fromkeys(problems))


def _within(
    files: list[GradableFile], bounds: Bounds, problems: list[str]
) -> Iterator[GradableFile]:
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
        names = ", ".join(walk.others[:_NAMED])
        more = len(walk.others) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f"no .py or .ipynb file was handed in, but {names}{rest}"
    if has_sources and walk.problems:
        return "no .py or .ipynb file could be opened"
    return "no .py or .ipynb file was handed in"


class _Walk:
    """A walk through a student's files, folders and archives, which collects what it finds."""

    def __init__(self, extraction_dir: ExtractionDir, bounds: Bounds) -> None:
        self.extraction_dir = extraction_dir
        self.meter = Meter(bounds)  # many archives of a student share it
        self.found: list[GradableFile] = []
        self.problems: list[str] = []
        self.others: list[str] = []
        self.entries = 0

    def visit(
        self, node: Node, path: tuple[bytes, ...], upload: int, *, inside: bool, depth: int
    ) -> None:
        """Visit a node; ``inside`` an archive, further archives are not opened."""
        label = describe(path) or "the folder"
        if isinstance(node, UnopenedEntry):
            self.problems.append(f"{label} is {node.reason}")
        elif not isinstance(node, File):
            self._folder(node, path, upload, inside=inside, depth=depth)
        elif is_code(path[-1]):
            self.found.append(GradableFile(label, node, upload))
        elif not is_archive(path[-1]):
            self.others.append(label)
            if path[-1].lower().endswith(_FOREIGN):
                self.problems.append(f"{label} is not opened; a .zip or .tar.gz is needed")
        elif inside:
            self.problems.append(f"{label} is an archive in an archive; it is not opened")
        else:
            self._archive(node, path, upload, depth)

    def _folder(
        self, folder: Folder, path: tuple[bytes, ...], upload: int, *, inside: bool, depth: int
    ) -> None:
        label = describe(path) or "the folder"
        if depth > DEEPEST:
            self.problems.append(f"{label} is more than {DEEPEST} folders deep; it is not opened")
            return
        try:
            children = folder.children()
        except UnreadableFile as error:
            self.problems.append(f"{label} {error}")
            return
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
        label = describe(path)
        try:
            with file.open() as stream:
                root, problems = unpack(stream, path[-1], self.extraction_dir, self.meter)
        except OSError as error:
            self.problems.append(f"{label} cannot be read: {error.strerror}")
            return
        self.problems.extend(f"{label} {problem}" for problem in problems)
        self._folder(root, path, upload, inside=True, depth=depth + 1)


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
    """One submitter of a Gradescope submission."""

    name: str | None = None
    sid: str | None = None
    email: str | None = None


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
        problem = getattr(error, "problem", None) or "its text has characters that YAML lacks"
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise UnreadableFile(f"is no YAML{where}: {problem}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"is no YAML: {error}") from None
    if not found:
        raise UnreadableFile("names no submissions; a mapping from folders to :submitters: is due")
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
        if not self._opens(yaml.MappingStartEvent):
            return ()
        for name in self._keys():
            if name == ":submitters":
                people = self._people()
            else:
                self._skip(self._next())
        return tuple(people)

    def _people(self) -> list[Submitter]:
        people: list[Submitter] = []
        if not self._opens(yaml.SequenceStartEvent):
            return people
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                self._skip(event)
                continue
            texts = {}
            for name in self._keys():
                event = self._next()
                texts[name] = self._text(event)
                self._skip(event)
            one = Submitter(texts.get(":name"), texts.get(":sid"), texts.get(":email"))
            if one != Submitter():
                people.append(one)
        return people

    def _keys(self) -> Iterator[str]:
        """Yield the keys of the mapping that has begun; the caller reads each value."""
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            name = self._text(event)
            self._skip(event)
            if name is None:
                self._skip(self._next())
            else:
                yield name

    def _next(self) -> Any:
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

    def _opens(self, kind: type) -> bool:
        """Return whether the next value begins with such an event, and skip it otherwise."""
        event = self._next()
        if isinstance(event, kind):
            return True
        self._skip(event)
        return False

    def _skip(self, event: Any) -> None:
        """Skip the rest of the value that begins with this event."""
        if isinstance(event, yaml.CollectionStartEvent):
            outside = self._depth - 1
            while self._depth > outside:
                self._text(self._next())

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


# Whose file is which: the layouts in which a class's work arrives. ----------------
#
# - **Canvas**, "Download Submissions": flat files
#   ``<name>[_LATE]_<user>_<upload>_<file>``, or ``[LATE_]anon_<id>_<upload>_<file>``
#   where grading is anonymous; text entries end in ``_text.html`` or
#   ``_link.html`` without an upload's number.  The name is in lower case without
#   spaces; a name that occurs twice gets ``-1``, ``-2``.  From ``ContentZipper``
#   (``lib/content_zipper.rb``) and ``Attachment.make_unique_filename`` of
#   https://github.com/instructure/canvas-lms.
# - **Moodle**, "Download all submissions": with "Download submissions in
#   folders" ``<Full Name>_<id>_assignsubmission_file[_]/…``, else flat files
#   ``<Full Name>_<id>_assignsubmission_file_<file>``; online texts say
#   ``onlinetext`` for ``file``.  A blind assignment has ``Participant`` for the
#   name, a group's name stands before it.  From ``assign::download_submissions``
#   (``mod/assign/locallib.php``) of https://github.com/moodle/moodle.
# - **Gradescope**, "Export Submissions": see :func:`submitters`.
# - **nbgrader**: ``submitted/<student>/<assignment>/…``, from "How to structure
#   course files" (``user_guide/philosophy``) of https://nbgrader.readthedocs.io.
# - otherwise one folder for each student, and flat files and archives, each named
#   for its student.
#
# Canvas' and Moodle's numbers become the student's ``sid``, Gradescope's ``:sid:``
# as well.

_CANVAS = re.compile(
    rb"(?P<name>[^/]+?)(?:_LATE)?_(?P<sid>\d{1,20})_(?P<upload>\d{1,20})_(?P<file>.+)", re.DOTALL
)
_CANVAS_ANONYMOUS = re.compile(
    rb"(?:LATE_)?(?P<name>anon_(?P<sid>[A-Za-z0-9]+))_(?P<upload>\d{1,20})_(?P<file>.+)", re.DOTALL
)
_CANVAS_TEXT = re.compile(
    rb"(?:(?P<name>[^/]+?)(?:_LATE)?_(?P<sid>\d{1,20}))_(?P<file>(?:text|link)\.html)", re.DOTALL
)
_MOODLE = re.compile(
    rb"(?P<name>.+?)_(?P<sid>\d{1,20})_assignsubmission_[a-z]+(?:_(?P<file>.*))?", re.DOTALL
)

_SUBMITTED = b"submitted"

#: Names that stand beside nbgrader's ``submitted``.
_NBGRADER = frozenset(
    {
        *(b"nbgrader_config.py", b"gradebook.db", b"source", b"release"),
        *(b"autograded", b"feedback", b"downloaded"),
    }
)

#: Folders that are opened, each the only one, to find the students' entries.
_WRAPPINGS = 4


def sort_out(root: Folder, archive: bytes | None) -> tuple[list[StudentFiles], list[str]]:
    """Return the students of a tree, and problems that concern none of them.

    Args:
        root: the root of the submissions.
        archive: the name of the archive that the tree came from, if it came from one.

    Raises:
        UnreadableFile: the root cannot be listed.
    """
    children = _clean(root)
    for _ in range(_WRAPPINGS):
        inner = _inner(children, archive)
        if inner is None:
            break
        children = _clean(inner)
        if inner.name == _SUBMITTED:
            break
    students = _Students()
    metadata = next((c for c in children if c.name == METADATA and isinstance(c, File)), None)
    if metadata is not None:
        _gradescope(students, children, metadata)
    else:
        _by_names(students, children)
        if len(children) == 1 and _looks_like_a_class(children[0]):
            students.problems.append(
                f"everything is in the folder {shown(children[0].name)}, which is taken for one"
                " student; if it holds the class, name that folder"
            )
    return list(students.by_identity.values()), students.problems


class _Students:
    """The students that have been found so far, with their files."""

    def __init__(self) -> None:
        self.by_identity: dict[bytes, StudentFiles] = {}
        self.problems: list[str] = []

    def add(
        self,
        identity: bytes,
        student: str,
        source: SubmittedNode | None,
        who: Submitter | None = None,
    ) -> StudentFiles:
        """Add a node to a student's files, and the student if the identity is new."""
        who = who or Submitter()
        files = self.by_identity.get(identity)
        if files is None:
            files = StudentFiles(identity, student, who.email, who.sid)
            self.by_identity[identity] = files
        if source is not None:
            files.sources.append(source)
        return files


def _clean(folder: Folder) -> list[Node]:
    return [child for child in folder.children() if not is_junk(child.name)]


def _inner(children: list[Node], archive: bytes | None) -> Folder | None:
    """Return the folder to look into instead, if this one only wraps it."""
    folders = {c.name: c for c in children if not isinstance(c, (File, UnopenedEntry))}
    alone = len(children) == 1
    submitted = folders.get(_SUBMITTED)
    if submitted is not None and (alone or any(c.name in _NBGRADER for c in children)):
        return submitted
    if not alone or not folders:
        return None
    (folder,) = folders.values()
    try:
        below = _clean(folder)
    except UnreadableFile:
        return None
    if any(c.name == METADATA for c in below) or _pattern(below) or _SUBMITTED in _names(below):
        return folder
    # programs that pack a folder often wrap it in one of the archive's name
    wraps = archive is not None and folder.name == stem(archive)
    return folder if wraps or folder.name == b"submissions" else None


def _looks_like_a_class(node: Node) -> bool:
    """Return whether a folder looks like a class rather than like a student."""
    if isinstance(node, (File, UnopenedEntry)):
        return False
    try:
        below = _clean(node)
    except UnreadableFile:
        return False
    folders = [c for c in below if not isinstance(c, (File, UnopenedEntry))]
    return len(folders) > 1 and not any(is_code(c.name) for c in below)


def _names(nodes: Iterable[Node]) -> set[bytes]:
    return {node.name for node in nodes}


def _pattern(children: list[Node]) -> str | None:
    """Return the learning platform whose pattern most names follow."""
    moodle = [c for c in children if _MOODLE.fullmatch(c.name)]
    if moodle and 2 * len(moodle) > len(children):
        return "moodle"
    files = [c for c in children if isinstance(c, (File, UnopenedEntry))]
    canvas = [c for c in files if _canvas(c.name)]
    return "canvas" if canvas and 2 * len(canvas) > len(children) else None


def _canvas(name: bytes) -> re.Match[bytes] | None:
    return (
        _CANVAS_ANONYMOUS.fullmatch(name) or _CANVAS.fullmatch(name) or _CANVAS_TEXT.fullmatch(name)
    )


def _by_names(students: _Students, children: list[Node]) -> None:
    """Find the students of a layout in which the names tell everything."""
    system = _pattern(children)
    for child in children:
        found = None
        if system == "moodle":
            found = _MOODLE.fullmatch(child.name)
        elif system == "canvas" and isinstance(child, (File, UnopenedEntry)):
            found = _canvas(child.name)
        if found:
            _add_matched(students, child, found)
        elif not isinstance(child, File):
            students.add(child.name, shown(child.name), SubmittedNode(child, _top(child)))
        elif is_code(child.name) or is_archive(child.name):
            student = stem(child.name)
            students.add(student, shown(student), SubmittedNode(child, (child.name,)))
        elif child.name.lower().endswith((b".rar", b".7z")):
            student = child.name.rpartition(b".")[0]
            students.add(student, shown(student), SubmittedNode(child, (child.name,)))


def _add_matched(students: _Students, node: Node, found: re.Match[bytes]) -> None:
    """Add a node whose name matches a platform's pattern."""
    parts = found.groupdict()
    sid = parts["sid"]
    identity = parts["name"] if parts["name"].endswith(sid) else parts["name"] + b"_" + sid
    file = parts.get("file") or b""
    path = (file,) if file and isinstance(node, (File, UnopenedEntry)) else _top(node)
    source = SubmittedNode(node, path, int(parts.get("upload") or 0))
    who = Submitter(sid=sid.decode("ascii"))
    students.add(identity, shown(parts["name"]), source, who)


def _top(node: Node) -> tuple[bytes, ...]:
    """Return the beginning of a node's path, which does not repeat a student's own folder."""
    return (node.name,) if isinstance(node, (File, UnopenedEntry)) else ()


def _gradescope(students: _Students, children: list[Node], metadata: File) -> None:
    """Find the students of Gradescope's export."""
    people: dict[str, tuple[Submitter, ...]] = {}
    try:
        with metadata.open() as stream:
            people = submitters(stream)
    except UnreadableFile as error:
        students.problems.append(
            f"{shown(METADATA)} {error}; students are called by their folders' names"
        )
    except OSError as error:
        students.problems.append(f"{shown(METADATA)} cannot be read: {error.strerror}")
    by_folder = {raw(folder): each for folder, each in people.items()}
    for child in children:
        if child.name == METADATA:
            continue
        if isinstance(child, File) and child.name not in by_folder:
            if is_code(child.name) or is_archive(child.name):
                students.problems.append(
                    f"{shown(child.name)} stands beside the folders of the export; it is not graded"
                )
            continue
        _submitted(
            students, child.name, SubmittedNode(child, _top(child)), by_folder.get(child.name, ())
        )
    for folder in sorted(by_folder.keys() - _names(children)):
        for student in _submitted(students, folder, None, by_folder[folder]):
            student.problems.append(f"the export has no folder {shown(folder)}")


def _submitted(
    students: _Students, folder: bytes, source: SubmittedNode | None, people: tuple[Submitter, ...]
) -> list[StudentFiles]:
    """Add a submission once for every submitter of its group."""
    if len(people) <= 1:
        who = people[0] if people else Submitter()
        return [students.add(folder, _name_of(who, folder), source, _shown(who))]
    return [
        students.add(
            b"\0".join((folder, raw(who.sid or who.email or who.name or ""), b"%d" % number)),
            _name_of(who, folder),
            source,
            _shown(who),
        )
        for number, who in enumerate(people)
    ]


def _name_of(who: Submitter, folder: bytes) -> str:
    return shown(raw(who.name or who.email or who.sid or "") or folder)


def _shown(who: Submitter) -> Submitter:
    return Submitter(
        *(None if text is None else shown(raw(text)) for text in (who.name, who.sid, who.email))
    )


# All submissions. -----------------------------------------------------------------


@dataclass(frozen=True)
class SubmittedFile:
    """A file of a submission.

    Attributes:
        label: its path within the submission, for people; the name of an archive
            that holds it is a part of the path.
        upload: the number that Canvas gave to its upload, or 0.
        file: the node that opens it.
    """

    label: str
    upload: int
    file: File

    def read(self) -> bytes:
        """Return its contents, read anew every time.

        Raises:
            UnreadableFile: it cannot be read, or has grown too large.
        """
        return read_whole(self.file, self.label)


@dataclass(frozen=True)
class StudentSubmission:
    """The submission of one student.

    Attributes:
        key: a name for it that is safe as a file name everywhere, the same in
            every run, and unique in the class.
        student: the student's name, for people.  Names may be equal.
        email: the student's address, where it is known.
        sid: the student's number or login on the learning platform, where it is known.
        files: the files that can be graded, oldest first.
        problems: sentences that say what is wrong with the submission.
    """

    key: str
    student: str
    email: str | None
    sid: str | None
    files: tuple[SubmittedFile, ...]
    problems: tuple[str, ...]

    def digest(self) -> str:
        """Return a hash of labels and contents, which changes when a file does.

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
    """Return the newer of two files of a student, by name (see :mod:`grader.classroom.names`)."""
    return max(one, other, key=lambda file: age(file.label, file.upload))


class Arrivals:
    """All submissions; a context manager that owns the unpacked files.

    Attributes:
        submissions: one for every student, in the order of names.
        problems: sentences about problems that concern no student in particular.
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
        """Delete the unpacked files; no file can be read after that."""
        self._resources.close()


def collect(source: Path, whole: Bounds = CLASS, each: Bounds = STUDENT) -> Arrivals:
    """Find all submissions in a folder, a file or an archive.

    Args:
        source: the path that the instructor named; a link here is followed, others never.
        whole: bounds on an archive of the whole class.
        each: bounds on a student's own archives together.

    Raises:
        RequestError: the path does not exist, or holds no submission.
    """
    resources = contextlib.ExitStack()
    try:
        extraction_dir = resources.enter_context(ExtractionDir(whole.kept))
        root, archive, problems = _root(source, extraction_dir, whole, resources)
        try:
            students, more = sort_out(root, archive)
        except UnreadableFile as error:
            raise RequestError(f"{source} {error}") from None
        problems += more
        if not students:
            why = f": {'; '.join(problems)}" if problems else ""
            raise RequestError(
                f"{source} holds no submissions{why}; expected is a folder per student, or a"
                " download of Canvas, Moodle, Gradescope or nbgrader"
            )
        submissions = _distinct([_submission(one, extraction_dir, each) for one in students])
    except BaseException:
        resources.close()
        raise
    submissions.sort(key=lambda one: (one.student.casefold(), one.student, one.key))
    return Arrivals(tuple(submissions), tuple(problems), resources)


def _root(
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


def _submission(
    student: StudentFiles, extraction_dir: ExtractionDir, bounds: Bounds
) -> StudentSubmission:
    files, problems = gather(student, extraction_dir, bounds)
    return StudentSubmission(
        key(student.identity, student.student),
        student.student,
        student.email,
        student.sid,
        tuple(SubmittedFile(found.label, found.upload, found.file) for found in files),
        problems,
    )


def _distinct(submissions: list[StudentSubmission]) -> list[StudentSubmission]:
    """Add a problem to submissions whose students' names look the same."""
    alike = defaultdict(list)
    for one in submissions:
        alike[lookalike(one.student)].append(one)
    distinct = []
    for one in submissions:
        others = len(alike[lookalike(one.student)]) - 1
        note = f"{others} more by a name that looks the same: they are graded apart"
        distinct.append(replace(one, problems=(*one.problems, note)) if others else one)
    assert len({one.key for one in distinct}) == len(submissions), "two students with one key"
    return distinct
