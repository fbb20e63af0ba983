"""Mistakes that people make in an exercise, as programs.

Each is a file in the folder of its chapter: a whole answer that makes the mistake and no other.
Its docstring is the hint, and the program is at once the prediction of what the mistake does and
the test that it is recognised::

    \"\"\"Every rank ends with rank 0's x. The source is src, and it is not always rank 0.\"\"\"
    # exercise: broadcast
    # diagnosis: wrong_value
    import torch.distributed as dist

    def broadcast(x, src):
        ...

``# or: FIRST = 1`` names another program that deserves the same hint: the same one with this value
in the place of the one that the file gives to ``FIRST``.  What the mistakes of a chapter share
stands in ``_common.py``, which comes before each of them.  An ``or`` there is another style: it is
no mistake, and people who make the same mistake may differ in it.  The header may also hold what
``tools/course.py`` asks of the verdict on a wrong answer.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from grader.errors import DeclarationError
from headcount.core.verdict import Diagnosis

__all__ = ["MistakeProgram", "read_mistake", "read_mistakes"]

#: What comes before all mistakes of its folder, if it is there.
_COMMON = "_common.py"

_HEADER = re.compile(r"^# (exercise|diagnosis|or): (.+)$", re.M)


@dataclass(frozen=True)
class MistakeProgram:
    """A program that makes one mistake.

    Attributes:
        name: the name of its file.
        exercises: the exercises in whose answers it is made; the program defines all of them.
        diagnosis: the word for what comes of it.
        hint: what to tell whoever has made it.
        sources: the program's text, and those of its other forms.
        styles: for each of them, its texts in other styles.
    """

    name: str
    exercises: tuple[str, ...]
    diagnosis: Diagnosis
    hint: str
    sources: tuple[str, ...]
    styles: tuple[tuple[str, ...], ...]


def read_mistakes(folder: Path) -> tuple[MistakeProgram, ...]:
    """Return the mistakes in a folder; none if it does not exist.

    Raises:
        DeclarationError: a file is no mistake.
    """
    paths = sorted(folder.glob("*.py"))
    return tuple(read_mistake(path) for path in paths if path.name != _COMMON)


def read_mistake(path: Path) -> MistakeProgram:
    """Return the mistake that a file holds.

    Raises:
        DeclarationError: it has no hint, or its header does not say what it is.
    """
    text = path.read_text(encoding="utf-8")
    hint = ast.get_docstring(ast.parse(text))
    if not hint:
        raise DeclarationError(f"{path}: begin with the hint, as a docstring")
    header: dict[str, list[str]] = {"exercise": [], "diagnosis": [], "or": []}
    for name, value in _HEADER.findall(text):
        header[name].append(value.strip())
    common = path.with_name(_COMMON)
    before, *others = _forms(common) if common.exists() else [""]
    forms = _forms(path)
    exercises = tuple(name.strip() for line in header["exercise"] for name in line.split(","))
    if not exercises or len(header["diagnosis"]) != 1:
        raise DeclarationError(f"{path}: the header needs `# exercise:` and one `# diagnosis:`")
    if header["diagnosis"][0] not in set(Diagnosis):
        raise DeclarationError(f"{path}: {header['diagnosis'][0]!r} is no diagnosis")
    return MistakeProgram(
        path.stem,
        exercises,
        Diagnosis(header["diagnosis"][0]),
        " ".join(hint.split()),
        tuple(f"{before}{one}" for one in forms),
        tuple(tuple(f"{other}{one}" for other in others) for one in forms),
    )


def _forms(path: Path) -> list[str]:
    """Return the text of a file, and those with other values of its constants."""
    text = path.read_text(encoding="utf-8")
    values = [value for name, value in _HEADER.findall(text) if name == "or"]
    return [f"{one}\n" for one in (text, *(_changed(path, text, one) for one in values))]


def _changed(path: Path, text: str, values: str) -> str:
    """Return a program with other values of its constants: ``FIRST = 1; SECOND = 2``."""
    for assignment in values.split(";"):
        name = assignment.partition("=")[0].strip()
        before, *others = re.findall(rf"^{re.escape(name)} = .*$", text, re.M) or [""]
        if not before or others:
            raise DeclarationError(f"{path}: `{name} = …` must stand at the start of one line")
        text = text.replace(before, assignment.strip())
    return text
