"""``python -m grader release``: the course for students, without its solutions.

The bundle holds notebooks with stubs, pictures, the grader, and the files that
installing it needs.  It is searched for solutions before it is written to its
place, since a solution that has been given out cannot be taken back.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.exercise.answers import IS_RIGHT, RIGHT
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.exercise.help import sections
from grader.submission.submission import Submission
from headcount.core.errors import HeadcountError, RequestError
from headcount.core.program import NotDefined, is_stub, load

__all__ = ["Leak", "release"]

#: Files and folders that are released, relative to the course.
_CONTENTS = (
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "pyproject.toml",
    "requirements.lock",
    "requirements.txt",
    "tools/install.py",  # what make lab and make update run
    "tools/lab",
    "tools/update.py",
    ".binder",
    "docs",
    "grader",
    "headcount/CHANGELOG.md",
    "headcount/LICENSE",
    "headcount/README.md",
    "headcount/docs",
    "headcount/pyproject.toml",
    "headcount/src",
    "imgs",
    "notebooks",
)

#: Files that a working folder collects, and that are not released.
_JUNK = shutil.ignore_patterns(
    "__pycache__",
    "*.pyc",
    ".ipynb_checkpoints",
    ".grader",
    ".DS_Store",
    "*.sqlite",
    "*.old*.*",
    "*.egg-info",
    "teaching.md",  # it has questions for a class, with their answers
)

#: Longest solution, in characters, that may occur in a text by chance.
_TELLING = 25

#: What students read in place of a hint that is left out.
_LEFT_OUT = "The last hint, which is the whole answer, is not in this edition of the course."

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"


class Leak(HeadcountError):
    """The bundle would give a solution away; nothing has been written."""


def release(course: Path, to: Path, catalogue: Catalogue[Exercise], answers: bool = True) -> int:
    """Write the students' bundle.

    Args:
        course: a checkout of the course, with its solutions.
        to: a folder that does not exist yet, or is empty.
        catalogue: the exercises of the course.
        answers: whether hints that are the whole answer stay in it, and the known answers that
            are wrong, most of them in one place; right ones never do.

    Returns:
        The number of files.

    Raises:
        RequestError: this is no checkout, or the target is in use.
        Leak: something in it gives a solution away.
    """
    if not (course / "solutions").is_dir() or not (course / "notebooks").is_dir():
        raise RequestError(f"{course} is no checkout of the course: it has no solutions/")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise RequestError(f"{to} exists and is not empty; name a new folder")
    if to.resolve().is_relative_to(course.resolve() / "grader"):
        raise RequestError(f"{to} lies in what is to be released")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=to.parent) as scratch:
        bundle = Path(scratch) / "bundle"
        _copy(course, bundle)
        told = {} if answers else _answers(catalogue)
        if told:
            _leave_out_answers(bundle / "grader" / "course")
        leaks = [
            *_links_and_outputs(bundle),
            *_written_stubs(bundle, catalogue),
            *_solutions_in_texts(course, bundle),
            *_right_answers(bundle),
            *_answers_in_bundle(bundle, told),
        ]
        if leaks:
            listed = "".join(f"\n  {leak}" for leak in leaks[:20])
            raise Leak(f"not released, because of {len(leaks)} leaks:{listed}")
        if to.exists():
            to.rmdir()
        bundle.rename(to)
    return sum(path.is_file() for path in to.rglob("*"))


def _copy(course: Path, bundle: Path) -> None:
    bundle.mkdir()
    for name in _CONTENTS:
        source = course / name
        if source.is_dir():
            shutil.copytree(source, bundle / name, ignore=_JUNK, symlinks=True)
        elif source.is_file():
            (bundle / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, bundle / name)
    # what an assistant may do for a student, where the course's own page is for those who change it
    (bundle / "grader" / "cli" / "students.md").rename(bundle / "AGENTS.md")
    for folder in (bundle / "grader" / "course" / "answers").glob(f"*/{RIGHT}"):
        shutil.rmtree(folder)


def _answers(catalogue: Catalogue[Exercise]) -> dict[str, str]:
    """Return the code of hints that are whole answers, by exercise."""
    told = {name: one.help.hints[-1] for name, one in catalogue.items() if one.help.tells_all}
    return {name: hint.partition("\n")[2] for name, hint in told.items()}


def _leave_out_answers(package: Path) -> None:
    """Replace hints with code by :data:`_LEFT_OUT`, and take away answers that are nearly right."""
    for path in package.glob("help/*.md"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for section in reversed([*sections(path)]):
            if section.is_answer:
                lines[section.lines] = [f"\n{_LEFT_OUT}\n\n"]
        path.write_text("".join(lines), encoding="utf-8")
    for folder in package.glob("answers/[0-9]*"):
        shutil.rmtree(folder)


def _answers_in_bundle(bundle: Path, answers: dict[str, str]) -> Iterator[str]:
    """Yield files that still have the code of a hint that is left out."""
    codes = {name: _squeezed(code) for name, code in answers.items()}
    codes = {name: code for name, code in codes.items() if len(code) > _TELLING}
    for path in sorted(bundle.rglob("*")) if codes else ():
        if path.suffix not in (".py", ".md", ".ipynb"):
            continue
        # the grader's own code computes, in places, what an answer does
        text = _squeezed(_strings(path) if path.suffix == ".py" else _readable(path))
        for name, code in codes.items():
            if code in text:
                yield f"{path.relative_to(bundle)} has the whole answer to {name}"


def _strings(path: Path) -> str:
    """Return the strings in Python's source, where neighbours in a row are one."""
    nodes = ast.walk(ast.parse(path.read_bytes()))
    return "\n".join(str(node.value) for node in nodes if isinstance(node, ast.Constant))


def _links_and_outputs(bundle: Path) -> Iterator[str]:
    """Yield links, which may lead out of the bundle, and cells of notebooks that have been run."""
    for path in sorted(bundle.rglob("*")):
        if path.is_symlink():
            yield f"{path.relative_to(bundle)} is a link"
    for path in sorted((bundle / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1):
            if cell.get("outputs") or cell.get("execution_count"):
                yield f"{path.relative_to(bundle)}, cell {number} has been run"


def _written_stubs(bundle: Path, catalogue: Catalogue[Exercise]) -> Iterator[str]:
    """Yield exercises that are more than a stub, and stubs and chapters that are missing."""
    for chapter, exercises in catalogue.chapters().items():
        path = bundle / "notebooks" / f"{chapter}.ipynb"
        place = path.relative_to(bundle)
        if not path.is_file():
            yield f"{place} is missing"
            continue
        program = Submission.from_file(path, catalogue).program
        # what a chapter's own cells print is not for the one who releases it
        with contextlib.redirect_stdout(io.StringIO()):
            loaded = load(program, [exercise.name for exercise in exercises])
        for exercise in exercises:
            try:
                written = not is_stub(loaded.entry(exercise.name))
            except NotDefined:
                yield f"{place} has no stub of {exercise.name}"
            else:
                if written:
                    yield f"{place}: {exercise.name} is more than a stub"


def _solutions_in_texts(course: Path, bundle: Path) -> Iterator[str]:
    """Yield solutions in notebooks and pages; the grader's hints may hold solutions."""
    solutions = [
        (chapter.stem, block)
        for chapter in sorted((course / "solutions").glob("*.py"))
        for block in _solutions(chapter.read_text(encoding="utf-8"))
    ]
    texts = {
        path: _squeezed(_readable(path))
        for folder in ("notebooks", "docs", "headcount/docs")
        for path in sorted((bundle / folder).rglob("*"))
        if path.is_file() and path.suffix != ".png"  # a picture has no text to search
    }
    for path, text in texts.items():
        if _BEGIN in text or _END in text:
            yield f"{path.relative_to(bundle)} has the marks of a solution"
        for chapter, block in solutions:
            if block in text:
                yield f"{path.relative_to(bundle)} has a solution of {chapter}"


def _right_answers(bundle: Path) -> Iterator[str]:
    """Yield known answers that are right, wherever they lie."""
    for path in sorted((bundle / "grader").rglob("*.py")):
        if IS_RIGHT.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(bundle)} is a right answer"


def _solutions(source: str) -> Iterator[str]:
    """Yield the solutions between the marks, with spaces squeezed, except very short ones."""
    for block in re.findall(rf"{_BEGIN}\n(.*?){_END}", source, re.DOTALL):
        squeezed = _squeezed(block)
        if len(squeezed) > _TELLING:
            yield squeezed


def _readable(path: Path) -> str:
    """Return the text of a page, or of a notebook's cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def _squeezed(text: str) -> str:
    return " ".join(text.split())
