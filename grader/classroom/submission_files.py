"""From a student's part of the tree to the files that can be graded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.classroom.archives import DEEPEST, unpack
from grader.classroom.names import age
from grader.classroom.tree import (
    STUDENT,
    Bounds,
    ExtractionDir,
    File,
    Folder,
    Meter,
    Node,
    UnopenedEntry,
    describe,
    is_archive,
    is_code,
    is_junk,
)
from grader.core.errors import UnreadableFile

__all__ = ["GradableFile", "StudentFiles", "SubmittedNode", "gather"]

#: Files of one submission, and things looked at to find them.
MOST_FILES, MOST_ENTRIES = 500, 20_000

#: Other files that a reason names.
_NAMED = 3

_FOREIGN = (b".rar", b".7z")


@dataclass(frozen=True)
class SubmittedNode:
    """A node that belongs to a student: its path for people, and the upload's number."""

    node: Node
    path: tuple[bytes, ...] = ()
    upload: int = 0


@dataclass
class StudentFiles:
    """What one student handed in, unopened.

    Attributes:
        identity: the bytes that tell the student from all others.
        student: the name for people.
        email: the address, if the layout knows it.
        sid: the number or login that the layout knows the student by.
        sources: the student's files and folders.
        problems: what is wrong already.
    """

    identity: bytes
    student: str
    email: str | None = None
    sid: str | None = None
    sources: list[SubmittedNode] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GradableFile:
    """A file that can be graded, by its path within the submission."""

    label: str
    file: File
    upload: int


def gather(
    pile: StudentFiles, extraction_dir: ExtractionDir, bounds: Bounds = STUDENT
) -> tuple[tuple[GradableFile, ...], tuple[str, ...]]:
    """A student's files, oldest first, and what is wrong with the submission."""
    walk = _Walk(extraction_dir, bounds)
    for source in pile.sources:
        walk.visit(source.node, source.path, source.upload, inside=False, depth=0)
    problems = [*pile.problems, *walk.problems]
    files = sorted(walk.found, key=lambda found: age(found.label, found.upload))
    kept = list(_within(files, bounds, problems))
    if not kept:
        problems.append(_nothing(walk, bool(pile.sources)))
    return tuple(reversed(kept)), tuple(dict.fromkeys(problems))


def _within(
    files: list[GradableFile], bounds: Bounds, problems: list[str]
) -> Iterator[GradableFile]:
    """The newest files that are within the bounds, newest first."""
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


def _nothing(walk: _Walk, came: bool) -> str:
    if walk.others:
        names = ", ".join(walk.others[:_NAMED])
        more = len(walk.others) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f"no .py or .ipynb file was handed in, but {names}{rest}"
    if came and walk.problems:
        return "no .py or .ipynb file could be opened"
    return "no .py or .ipynb file was handed in"


class _Walk:
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
        """Look at a node; ``inside`` an archive, further archives stay closed."""
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
            return  # a virtual environment: other people's code
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
