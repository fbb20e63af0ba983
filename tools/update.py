"""Brings a clone of the course to its newest edition, with the learner's answers: ``make update``.

Git alone refuses, since a learner's notebooks are files of the course that they have changed.  Here
each such file is first kept beside itself; then git takes the new edition; then what the learner
wrote is put into the new notebooks, cell by cell.  A cell of the course is known by its id, which
is made from its text, and an exercise's cell by its name.  What has no place in the new edition is
named, and stays in the old file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.cli.reset import keep_beside
from grader.files import replace_file

__all__ = ["UpdateError", "update"]

ROOT = Path(__file__).resolve().parent.parent

#: Lines of each part of the summary, so that it fits on a screen.
_LINES = 5

_Cell = dict[str, Any]


class UpdateError(Exception):
    """The course cannot be brought to a newer edition, and nothing has been changed."""


@dataclass
class Carried:
    """What became of a notebook that the learner had changed.

    Attributes:
        title: the chapter's title.
        answers: exercises whose answers are in the new edition.
        changed: those of them that the new edition asks for in another way.
        left: the first lines of cells that have no place in it.
        unreadable: whether the learner's file is no notebook, and nothing was carried over.
    """

    title: str
    answers: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    unreadable: bool = False


# Notebooks. -----------------------------------------------------------------------


def carry_over(base: bytes, mine: bytes, new: bytes) -> tuple[str, Carried]:
    """Return a new edition of a notebook with what a learner had written into the old one.

    Args:
        base: the old edition, as it came.
        mine: the old edition, as the learner left it.
        new: the new edition.
    """
    notebook = json.loads(new)
    cells: list[_Cell] = notebook["cells"]
    report = Carried(_title(cells))
    try:
        theirs = json.loads(mine)["cells"]
        before = json.loads(base)["cells"]
        notebook["cells"] = _merged(before, theirs, cells, report)
    except (ValueError, LookupError, TypeError, AttributeError):
        report.unreadable = True
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", report


def _merged(base: list[_Cell], mine: list[_Cell], new: list[_Cell], report: Carried) -> list[_Cell]:
    targets = {_key(cell): cell for cell in new}
    found: dict[str, _Cell] = {}
    #: The learner's own cells, by the key of the cell that they stand below.
    own: defaultdict[str, list[_Cell]] = defaultdict(list)
    matched: set[str] = set()
    above = ""
    for cell, origin in zip(mine, _origins(base, mine), strict=True):
        if origin is None:
            if _text(cell).strip():
                own[above].append(cell)
            continue
        key, edited = _key(origin), _text(cell) != _text(origin)
        matched.add(key)
        target = targets.get(key)
        if target is None:
            if edited:
                report.left.append(_first_line(cell))
            continue
        above = key
        if _text(target) == _text(origin):
            metadata = {**cell.get("metadata", {}), **target["metadata"]}
            found[key] = {**cell, "id": target["id"], "metadata": metadata}
        elif edited:
            found[key] = {**target, "source": cell["source"]}
            report.changed.append(_exercise(target))
        name = _exercise(target)
        if edited and name and not name.startswith("practice-"):
            report.answers.append(name)
    ids = {cell.get("id") for cell in new}
    merged = [*own[""]]
    texts = {_key(cell): _text(cell) for cell in base}
    for cell in new:
        key = _key(cell)
        # what the learner has deleted stays away, unless it is another now
        if key in matched or texts.get(key) != _text(cell):
            merged.append(found.get(key, cell))
        merged += own[key]
    for cells in own.values():
        for cell in cells:
            if cell.get("id") in ids or not cell.get("id"):
                cell["id"] = uuid.uuid4().hex[:8]
    return merged


def _origins(base: list[_Cell], mine: list[_Cell]) -> Iterator[_Cell | None]:
    """Yield for each of the learner's cells the one of the old edition that it was; or None."""
    free = {cell["id"]: cell for cell in base}
    known = {cell.get("id") for cell in mine} & set(free)
    for cell in mine:
        origin = free.pop(cell.get("id"), None)
        if origin is None:
            # some front ends give a cell another id when they save it
            same = (
                one
                for name, one in free.items()
                if name not in known
                and (
                    (_exercise(one) and _exercise(one) == _exercise(cell))
                    or _text(one) == _text(cell)
                )
            )
            origin = next(same, None)
            if origin is not None:
                del free[origin["id"]]
        yield origin


def _text(cell: _Cell) -> str:
    return "".join(cell["source"])


def _exercise(cell: _Cell) -> str:
    """Return the name of the exercise that a cell answers; empty for any other cell."""
    marks = cell.get("metadata", {}).get("nbgrader", {})
    return str(marks.get("grade_id", "")).removesuffix("-answer") if marks.get("solution") else ""


def _key(cell: _Cell) -> str:
    return _exercise(cell) or str(cell["id"])


def _first_line(cell: _Cell) -> str:
    line = next((line.strip() for line in _text(cell).splitlines() if line.strip()), "nothing")
    return line if len(line) <= 40 else f"{line[:40]}…"


def _title(cells: Iterable[_Cell]) -> str:
    texts = (_text(cell) for cell in cells if cell.get("cell_type") == "markdown")
    found = (re.search(r"^# +(.+?) *$", text, re.MULTILINE) for text in texts)
    return next((match[1] for match in found if match), "a chapter")


def _is_as_it_came(base: bytes | None, mine: bytes) -> bool:
    """Return whether a notebook was only opened, when JupyterLab notes its kernel in it."""
    try:
        before, after = json.loads(base or b"")["cells"], json.loads(mine)["cells"]
        return [_text(cell) for cell in before] == [_text(cell) for cell in after] and not any(
            cell.get("outputs") or cell.get("attachments") for cell in after
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


# The clone. -----------------------------------------------------------------------


class Clone:
    """A clone of the course.

    Args:
        root: its folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> bytes:
        """Return what git prints.

        Raises:
            UpdateError: git refuses; the message is git's.
        """
        try:
            done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, check=False)
        except OSError as error:
            raise UpdateError(f"git cannot be started: {error.strerror}") from None
        if done.returncode:
            raise UpdateError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def line(self, *words: str) -> str:
        """Return the line that git prints."""
        return self.git(*words).decode().strip()

    def paths(self, *words: str) -> list[str]:
        """Return the paths that git prints, which end with a zero byte each."""
        return [path.decode() for path in self.git(*words).split(b"\0") if path]

    def file(self, edition: str, path: str) -> bytes | None:
        """Return a file of an edition; None if it has none of this path."""
        if not self.paths("ls-tree", "-z", "--name-only", edition, "--", path):
            return None
        return self.git("cat-file", "blob", f"{edition}:{path}")


def update(root: Path) -> str:
    """Bring a clone to the newest edition; return what was done, for the learner.

    Raises:
        UpdateError: it cannot be done; everything is as it was.
    """
    clone = Clone(root)
    here, there = _editions(clone)
    if clone.line("merge-base", here, there) == there:
        return f"The course is the newest edition ({there[:8]}) already."
    changed = _theirs(clone, here, there)
    notebooks = {}
    for path, mine in changed.items():
        base, new = clone.file(here, path), clone.file(there, path)
        if path.endswith(".ipynb") and None not in (base, mine, new):
            notebooks[path] = carry_over(base, mine, new)  # type: ignore[arg-type]
    kept: dict[str, Path] = {}
    try:
        # before anything is touched, all of it exists twice
        for path, mine in changed.items():
            known = (clone.file(here, path), clone.file(there, path))
            if mine is not None and mine not in known and not _is_as_it_came(known[0], mine):
                kept[path] = keep_beside(root / path, mine)
        for path in changed:
            _take_away(clone, here, path)
        clone.git("merge", "--quiet", "--ff-only", there)
    except BaseException as error:
        for path, mine in changed.items():
            _put_back(root / path, mine)
        for copy in kept.values():
            copy.unlink()
        if isinstance(error, (UpdateError, OSError)):
            raise UpdateError(f"{error}\nNothing is changed.") from None
        raise
    for path, (text, _) in notebooks.items():
        if path in kept:
            replace_file(root / path, text.encode())
    count = clone.line("rev-list", "--count", f"{here}..{there}")
    carried = {path: report for path, (_, report) in notebooks.items() if path in kept}
    places = {path: str(copy.relative_to(root)) for path, copy in kept.items()}
    return "\n".join(_summary(there[:8], int(count), carried, places))


def _editions(clone: Clone) -> tuple[str, str]:
    """Return the commit that the clone is at, and the newest one of the branch it follows."""
    try:
        top = Path(clone.line("rev-parse", "--show-toplevel"))
    except UpdateError:
        top = Path()
    if top.resolve() != clone.root.resolve():
        raise UpdateError(
            f"{clone.root} is no clone, so git cannot bring it a newer edition. Clone the course"
            " anew (README, Start), and copy your answers into its notebooks."
        )
    try:
        branch = clone.line("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    except UpdateError:
        raise UpdateError(
            "This branch follows no other, so there is no telling where a newer edition is. Name"
            " it once: git branch --set-upstream-to=origin/main"
        ) from None
    try:
        clone.git("fetch", "--quiet")
    except UpdateError as error:
        raise UpdateError(f"The newest edition cannot be fetched: {error}") from None
    here, there = clone.line("rev-parse", "HEAD"), clone.line("rev-parse", "@{upstream}")
    own = clone.line("rev-list", "--count", f"{there}..{here}")
    if own != "0" and clone.line("merge-base", here, there) != there:
        raise UpdateError(
            f"This clone has commits that {branch} has not ({own}); merge the new edition yourself:"
            f" git merge {branch}. Nothing is changed."
        )
    return here, there


def _theirs(clone: Clone, here: str, there: str) -> dict[str, bytes | None]:
    """Return the files that learner and new edition have changed both, as the learner left them.

    A file is None where the learner has deleted it.
    """
    coming = clone.paths("diff", "-z", "--name-only", "--no-renames", here, there)
    touched = set(clone.paths("diff", "-z", "--name-only", "--no-renames", here))
    old = set(clone.paths("ls-tree", "-rz", "--name-only", here))
    found: dict[str, bytes | None] = {}
    for path in coming:
        place = clone.root / path
        # a file that git does not know is in the way of a new one, even if it ignores it
        if path in touched or (path not in old and place.is_file()):
            found[path] = place.read_bytes() if place.is_file() else None
    return found


def _take_away(clone: Clone, here: str, path: str) -> None:
    """Make a file what it is in an edition, which is nothing where that has none."""
    if clone.paths("ls-tree", "-z", "--name-only", here, "--", path):
        clone.git("checkout", "--quiet", here, "--", path)
    else:
        clone.git("rm", "--quiet", "--cached", "--ignore-unmatch", "--", path)
        (clone.root / path).unlink(missing_ok=True)


def _put_back(path: Path, mine: bytes | None) -> None:
    if mine is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(mine)


def _summary(
    edition: str, count: int, carried: Mapping[str, Carried], kept: Mapping[str, str]
) -> Iterator[str]:
    changes = "one change" if count == 1 else f"{count} changes"
    yield f"The course is at {edition} now, {changes} further."
    yield from _part(
        "Your answers are in the new edition:",
        [f"{one.title}: {', '.join(one.answers)}" for one in carried.values() if one.answers],
    )
    yield from _part(
        "What these ask for has changed, so look at your answers again:",
        [f"{one.title}: {', '.join(one.changed)}" for one in carried.values() if one.changed],
    )
    left = [
        f"{kept[path]}: the cell with `{line}`"
        for path, one in carried.items()
        for line in one.left
    ]
    left += [f"{kept[path]}: it is no notebook" for path, one in carried.items() if one.unreadable]
    left += [f"{copy}: what you changed" for path, copy in kept.items() if path not in carried]
    yield from _part("Not carried over; it is in the old file:", left)
    if kept:
        names = ", ".join([*kept.values()][:_LINES])
        more = f" and {len(kept) - _LINES} more" if len(kept) > _LINES else ""
        yield f"\nYour files as they were: {names}{more}. Delete them when you miss nothing."
    yield "If a chapter is open in JupyterLab: File → Reload Notebook from Disk."


def _part(head: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{head}"
        yield from (f"  {line}" for line in lines[:_LINES])
        if len(lines) > _LINES:
            yield f"  … and {len(lines) - _LINES} more"


def main() -> int:
    """Bring this clone to the newest edition."""
    try:
        print(update(ROOT))
    except UpdateError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
