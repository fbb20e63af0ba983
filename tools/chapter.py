"""A chapter's source: prose, stubs and solutions together in one percent-format file.

The source is a Python file that jupytext reads as a notebook.  What a student
has to write stands between two markers, alone on their lines::

    # %%
    def broadcast(x, src):
        ### BEGIN SOLUTION
        ...
        ### END SOLUTION

A text that they have to write has the markers inside its quotes.
The student's edition has a stub there, which says about how many lines are
missing; the solved edition has the lines without the markers.  The markers
are nbgrader's, and its source edition keeps them.

A sentence that leans on a measurement is backed by a claim, in a cell of its own below the one that
measures.  It is run when the chapter is built, and stands in no edition::

    # %% tags=["claim"]
    assert seconds["tree"] < seconds["loop"], "with eight ranks the tree is faster"

Where the exercises are known, every edition ends with a cell for each, which
says what the answer earns, and has the marks that nbgrader reads.  JupyterLab
shows them folded.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from tools import assignment

__all__ = ["Chapter", "ChapterError", "Claim"]

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"

#: The tag of a cell that holds a claim.
_CLAIM = "claim"

#: Tags that a cell may carry: of a claim, and nbval's, to leave an output that differs each time
#: uncompared.
TAGS = frozenset({_CLAIM, "nbval-ignore-output"})

_TITLE = re.compile(r"^# +(.+?) *$", re.MULTILINE)
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>[^)\s]+)\)")

#: Everything that would differ from machine to machine is left out.
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class ChapterError(Exception):
    """A mistake in a chapter's source, with its file and line."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class Claim:
    """What the text says of a measurement, as assertions.

    Attributes:
        source: the assertions, each with the sentence that it backs.
        line: where they begin in the chapter's source.
    """

    source: str
    line: int


@dataclass(frozen=True)
class _Cell:
    kind: str
    source: str
    line: int
    tags: tuple[str, ...] = ()
    #: the exercise whose points it asks for
    asks: str = ""


class Chapter:
    """A chapter, read from its source.

    Args:
        path: the ``.py`` file.
        exercises: names and their points.  None may be defined without a
            marked solution, or the student's edition would give it away.

    Raises:
        ChapterError: the source has a mistake.
    """

    def __init__(self, path: Path, exercises: Mapping[str, float] | None = None) -> None:
        self.path = path
        self.name = path.stem
        self._exercises = dict(exercises or {})
        self._text = path.read_text(encoding="utf-8")
        cells = list(self._read())
        self._cells = [cell for cell in cells if _CLAIM not in cell.tags]
        #: What is claimed of what the cells have printed so far, by the index of the last of them.
        self._claims: dict[int, list[Claim]] = {}
        shown = -1
        for cell in cells:
            if _CLAIM in cell.tags:
                if shown < 0:
                    raise self._fail(cell.line - 1, "a claim stands below the cell it is about")
                self._claims.setdefault(shown, []).append(Claim(cell.source, cell.line))
            else:
                shown += 1

    @property
    def title(self) -> str:
        """The first heading, such as ``02 · Broadcast``."""
        heading = next((_TITLE.search(c.source) for c in self._cells if c.kind == "markdown"), None)
        if heading is None:
            raise self._fail(1, "the first cell of prose has no title; begin it with `# `")
        return heading[1]

    def _fail(self, line: int, message: str) -> ChapterError:
        return ChapterError(self.path, line, message)

    def _read(self) -> Iterator[_Cell]:
        notebook = jupytext.reads(self._text, fmt="py:percent")
        lines = self._text.splitlines()
        starts = [i for i, line in enumerate(lines, 1) if line.startswith("# %%")]
        header = len(notebook.cells) - len(starts)
        if header:
            raise self._fail(1, "text before the first cell; begin with `# %% [markdown]`")
        for cell, start in zip(notebook.cells, starts, strict=True):
            tags = tuple(cell.metadata.get("tags", ()))
            unknown = set(tags) - TAGS
            if unknown:
                known = ", ".join(sorted(TAGS))
                raise self._fail(start, f"unknown tag {sorted(unknown)[0]!r}; known are {known}")
            if _CLAIM in tags:
                self._check_claim(cell, start)
            elif cell.cell_type == "markdown":
                self._check_prose(cell.source, start)
            else:
                self._check_code(cell.source, start + 1)
            yield _Cell(cell.cell_type, cell.source, start + 1, tags)

    def _check_prose(self, source: str, start: int) -> None:
        for offset, line in enumerate(source.splitlines(), 1):
            if BEGIN in line or END in line:
                raise self._fail(start + offset, "a solution's marker in prose")
            for image in _IMAGE.finditer(line):
                if not image["alt"].strip():
                    raise self._fail(start + offset, f"{image['path']} has no alt text")
                target = self.path.parent / image["path"]
                if "://" not in image["path"] and not target.is_file():
                    raise self._fail(
                        start + offset, f"{image['path']} does not exist; make imgs draws it"
                    )

    def _check_claim(self, cell: Any, start: int) -> None:
        try:
            found = ast.parse(cell.source).body if cell.cell_type == "code" else []
        except SyntaxError as error:
            raise self._fail(start, f"the claim is no Python: {error.msg}") from None
        if not found or not all(isinstance(one, ast.Assert) and one.msg for one in found):
            raise self._fail(
                start, "a claim is made of assertions, each with the sentence that it backs"
            )

    def _check_code(self, source: str, start: int) -> None:
        regions = list(self._regions(source, start))
        solved = _without_lines(source, [line for region in regions for line in region])
        for text, edition in ((solved, "solved"), (self._stubbed(source, start), "student's")):
            try:
                ast.parse(text)
            except SyntaxError as error:
                line = start + (error.lineno or 1) - 1
                raise self._fail(line, f"the {edition} edition is no Python: {error.msg}") from None
        for name, line in self._defined(solved):
            if not regions:
                raise self._fail(
                    start + line - 1,
                    f"{name} is an exercise, but no {BEGIN} says what a student writes",
                )

    def _defined(self, source: str) -> Iterator[tuple[str, int]]:
        """The exercises that a cell defines, with their lines in it."""
        for node in ast.parse(source).body:
            name = getattr(node, "name", None) or _text_assigned(node)
            if name in self._exercises:
                yield name, node.lineno

    def _regions(self, source: str, start: int) -> Iterator[tuple[int, int]]:
        """Index of the first and the last line of each marked solution."""
        opened: int | None = None
        lines = source.splitlines()
        for i, line in enumerate(lines):
            if BEGIN in line or END in line:
                marker = BEGIN if BEGIN in line else END
                if line.strip() != marker:
                    raise self._fail(start + i, f"{marker} must stand alone on its line")
                if marker == BEGIN:
                    if opened is not None:
                        raise self._fail(
                            start + i, f"{BEGIN} inside the solution of line {start + opened}"
                        )
                    opened = i
                elif opened is None:
                    raise self._fail(start + i, f"{END} without a {BEGIN} before it")
                else:
                    if not _statements(lines[opened + 1 : i]):
                        raise self._fail(start + opened, "an empty solution")
                    yield opened, i
                    opened = None
        if opened is not None:
            raise self._fail(start + opened, f"{BEGIN} without an {END} in its cell")

    def _stubbed(self, source: str, start: int) -> str:
        """The cell as a student gets it."""
        lines = source.splitlines()
        for first, last in reversed(list(self._regions(source, start))):
            invitation, indent = _invitation(lines[first : last + 1], _in_text(source, first))
            lines[first : last + 1] = [invitation, indent + assignment.STUB]
        return "\n".join(lines)

    def _invited(self, source: str, start: int) -> str:
        """The cell from which nbgrader, putting its stub between the markers, makes the same."""
        lines = source.splitlines()
        for first, last in reversed(list(self._regions(source, start))):
            inside = _in_text(source, first)
            lines.insert(first, _invitation(lines[first : last + 1], inside)[0])
        return "\n".join(lines)

    # Editions. ---------------------------------------------------------------

    def student_edition(self) -> Any:
        """The notebook that a student opens: stubs, and no outputs."""
        return self._notebook(self._stubbed)

    def stubs(self) -> dict[str, tuple[str, str]]:
        """By exercise: the id of its cell in the student's edition, and the cell's text."""
        found = {}
        for cell, made in zip(self._cells, self.student_edition().cells, strict=False):
            if cell.kind == "code":
                for name, _ in self._defined(cell.source):
                    found[name] = (made.id, made.source)
        return found

    def source_edition(self) -> Any:
        """The notebook from which ``nbgrader generate_assignment`` makes the student's."""
        return self._notebook(self._invited)

    def solved_edition(self) -> Any:
        """The notebook with the solutions, not yet executed."""

        def solved(source: str, start: int) -> str:
            regions = self._regions(source, start)
            return _without_lines(source, [line for region in regions for line in region])

        return self._notebook(solved)

    def claims(self) -> dict[str, list[Claim]]:
        """Return what is claimed of the outputs so far, by the id of the last cell of them."""
        cells = self.solved_edition().cells
        return {cells[index].id: claims for index, claims in self._claims.items()}

    def _notebook(self, edit: Any) -> Any:
        notebook = nbformat.v4.new_notebook(metadata=_METADATA)
        seen: dict[str, int] = {}
        answers: dict[int, list[str]] = {}
        texts: set[str] = set()
        for i, cell in enumerate(self._cells):
            if cell.kind == "code":
                answers[i] = [name for name, _ in self._defined(cell.source)]
                texts |= {_text_assigned(node) for node in ast.parse(cell.source).body}
        worth = {name: self._exercises[name] for names in answers.values() for name in names}
        for i, cell in enumerate([*self._cells, *_points_cells(worth, texts)]):
            digest = hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:12]
            seen[digest] = seen.get(digest, 0) + 1
            # the same text twice in a chapter still needs two ids
            name = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
            if cell.kind == "markdown":
                made = nbformat.v4.new_markdown_cell(cell.source, id=name)
            else:
                made = nbformat.v4.new_code_cell(edit(cell.source, cell.line), id=name)
            if cell.source == assignment.PROSE:
                made.metadata.update(assignment.FOLDED)
            if cell.tags:
                made.metadata["tags"] = list(cell.tags)
            if answers.get(i):
                made.metadata.update(assignment.answer(answers[i]))
            elif cell.asks:
                made.metadata.update(assignment.grade(cell.asks, worth[cell.asks]))
            elif worth and cell.kind == "code" and list(self._regions(cell.source, cell.line)):
                # written by the student, but not graded: nbgrader takes solutions out of marked
                # cells only
                made.metadata.update(assignment.answer([f"practice-{name}"]))
            notebook.cells.append(made)
        return notebook


def _points_cells(exercises: Mapping[str, float], texts: Set[str]) -> Iterator[_Cell]:
    """How a chapter with exercises ends."""
    if exercises:
        yield _Cell("markdown", assignment.PROSE, 0)
    for name in exercises:
        # a text does not know its own name
        answer = f"{name}={name}" if name in texts else name
        yield _Cell("code", assignment.QUESTION.format(name=answer), 0, asks=name)


def _text_assigned(node: ast.stmt) -> str:
    """The name to which a statement assigns a text as it stands; empty if it does not."""
    value = getattr(node, "value", None)
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    assigns = isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(targets[0], ast.Name)
    if assigns and isinstance(value, ast.Constant) and isinstance(value.value, str):
        return str(targets[0].id)
    return ""


def _in_text(source: str, line: int) -> bool:
    """Whether a line of a cell, counted from 0, stands inside a text's quotes."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # which is reported with its line, elsewhere
        return False
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.lineno <= line + 1 <= (node.end_lineno or 0)
        for node in ast.walk(tree)
    )


def _invitation(region: list[str], in_text: bool) -> tuple[str, str]:
    """What a student reads in place of a marked solution, and how far it is indented."""
    indent = region[0][: len(region[0]) - len(region[0].lstrip())]
    mark = "//" if in_text else "#"
    count = _statements(region[1:-1], mark)
    size = "1 line" if count == 1 else f"about {count} lines"
    return f"{indent}{mark} Your code here: {size}.", indent


def _statements(lines: list[str], mark: str = "#") -> int:
    """How many lines say something."""
    return sum(1 for line in lines if line.strip() and not line.strip().startswith(mark))


def _without_lines(source: str, dropped: list[int]) -> str:
    return "\n".join(line for i, line in enumerate(source.splitlines()) if i not in dropped)


def to_text(notebook: Any) -> str:
    """A notebook as it is stored: the same bytes on every machine."""
    notebook.metadata.clear()
    notebook.metadata.update(_METADATA)
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"
