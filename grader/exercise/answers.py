"""Answers whose verdict is known, as programs in files of one format, in the folder of a chapter.

A file's header says which exercises it answers and what the verdict must be::

    \"\"\"Every rank ends with rank 0's x. The source is src, and it is not always rank 0.\"\"\"
    # exercise: broadcast
    # diagnosis: wrong_value
    import torch.distributed as dist

    def broadcast(x, src):
        ...

A wrong answer that begins with a docstring *speaks*: it makes one mistake and no other, the
docstring is the hint, and the program is at once the prediction of what the mistake does and the
test that it is recognised.  One without a docstring must be rejected all the same.  A right answer
has the diagnosis ``none`` and lies in the folder ``right`` of the chapter, which every edition for
students leaves out.

Further lines of the header:

- ``# or: FIRST = 1`` names another answer with the same verdict: this one, with this value in the
  place of the one that it gives to ``FIRST``;
- ``# hint: WORDS`` are in the hint that an answer which does not speak must get; ``-`` stands for
  one that is given in general, where no mistake is proved;
- ``# says: WORDS`` are in the message, and ``# not: WORDS | WORDS`` neither there nor in the hint;
- ``# earns: 0.5`` is the largest share of the points that it may earn; it is judged to the end;
- ``# alike: messages`` stands where the hint says who sends to whom: it is given only if an
  answer's messages go between the same ranks.  ``# alike: arguments`` stands where it says what
  ends up in an argument that must not change;
- ``# on: 30_capstone`` puts the solved source of a chapter before it, and a later definition
  counts.  One that speaks has none: it has to run where no solutions are.

What the mistakes of a chapter share stands in ``_common.py``, which comes before each that speaks.
An ``or`` there is another style: it is no mistake, and people who make the same mistake may differ
in it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from grader.errors import DeclarationError
from headcount.core.verdict import Diagnosis

__all__ = ["IS_RIGHT", "RIGHT", "KnownAnswer", "read_answer", "read_answers"]

#: The folder of a chapter's right answers, and the diagnosis in their headers.
RIGHT, _NONE = "right", "none"

#: The beginning of a right answer, and of nothing else.
IS_RIGHT = re.compile(rf'\A("""(?s:.*?)""")?\n*(#.*\n)*# diagnosis: {_NONE}$', re.M)

#: What comes before all answers of its folder that speak, if it is there.
_COMMON = "_common.py"

_QUOTES = '"""'

#: What a header may say of a right answer, and of any.
_OF_THE_RIGHT = {"exercise", "diagnosis", "or", "on"}
_NAMES = _OF_THE_RIGHT | {"hint", "says", "not", "earns", "alike"}

#: What a hint may make a claim on beyond what ranks hold.
_ALIKE = ("messages", "arguments")

_LATE_DOCSTRING = re.compile(r'(#.*\n|\n)+"""')


@dataclass(frozen=True)
class KnownAnswer:
    """A program whose verdict is known.

    Attributes:
        path: its file.
        exercises: the exercises that it answers; the program defines all of them.
        diagnosis: what is wrong with it; ``None`` for a right answer.
        hint: what to tell whoever has made its mistake, if it speaks; else words of the hint that
            it must get, or ``-`` for one that is given in general.
        sources: the program's text, and those of its other forms.
        styles: for each of them, its texts in other styles.
        speaks: whether it is a mistake that answers are compared with.
        says: words that the message must hold.
        banned: words that neither the message nor the hint may hold.
        earns: the largest share of the points that it may earn, if that is said.
        on: the chapter whose solved source comes before it.
        alike: what an answer must share with it besides: ``messages``, ``arguments`` or nothing.
    """

    path: Path
    exercises: tuple[str, ...]
    diagnosis: Diagnosis | None
    hint: str
    sources: tuple[str, ...]
    styles: tuple[tuple[str, ...], ...]
    speaks: bool = True
    says: str = ""
    banned: tuple[str, ...] = ()
    earns: float | None = None
    on: str = ""
    alike: str = ""


def read_answers(folder: Path) -> tuple[KnownAnswer, ...]:
    """Return the answers in a folder, without those in folders below; none if it does not exist.

    Raises:
        DeclarationError: a file does not have the format of an answer.
    """
    common = _common_forms(folder)
    paths = (path for path in sorted(folder.glob("*.py")) if path.name != _COMMON)
    return tuple(_read(path, common) for path in paths)


def read_answer(path: Path) -> KnownAnswer:
    """Return the answer that a file holds.

    Raises:
        DeclarationError: it does not have the format of an answer.
    """
    return _read(path, _common_forms(path.parent))


def _read(path: Path, common: Sequence[str]) -> KnownAnswer:
    text = path.read_text(encoding="utf-8")
    docstring, header = _beginning(text)
    for fault in _faults(path, text, docstring, header):
        raise DeclarationError(f"{path}: {fault}")
    one = {name: values[0] for name, values in header.items() if values}
    right = one["diagnosis"] == _NONE
    speaks = bool(docstring) and not right
    before, *others = common if speaks else [""]
    forms = _forms(path, text, header["or"])
    return KnownAnswer(
        path=path,
        exercises=tuple(name.strip() for name in one["exercise"].split(",")),
        diagnosis=None if right else Diagnosis(one["diagnosis"]),
        hint=docstring if speaks else one.get("hint", ""),
        sources=tuple(f"{before}{form}" for form in forms),
        styles=tuple(tuple(f"{other}{form}" for other in others) for form in forms),
        speaks=speaks,
        says=one.get("says", ""),
        banned=tuple(words.strip() for words in one.get("not", "").split("|") if words.strip()),
        earns=float(one["earns"]) if "earns" in one else None,
        on=one.get("on", ""),
        alike=one.get("alike", ""),
    )


def _beginning(text: str) -> tuple[str, dict[str, list[str]]]:
    """Return the docstring that a file begins with, in one line, and the values in its header."""
    docstring, rest = "", text
    if text.startswith(_QUOTES):
        docstring, _, rest = text.removeprefix(_QUOTES).partition(_QUOTES)
        docstring = ast.literal_eval(f"{_QUOTES}{docstring}{_QUOTES}")
    header: dict[str, list[str]] = {name: [] for name in _NAMES}
    for line in takewhile(lambda line: line.startswith("#"), rest.lstrip("\n").split("\n")):
        name, colon, value = line.removeprefix("# ").partition(": ")
        if colon and name in header:
            header[name].append(value.strip())
    return " ".join(docstring.split()), header


def _faults(path: Path, text: str, docstring: str, header: dict[str, list[str]]) -> Iterator[str]:
    """Yield what is wrong with how an answer begins."""
    given = {name for name, values in header.items() if values}
    right = header["diagnosis"] == [_NONE]
    if not header["exercise"]:
        yield "begin with `# exercise: NAME`, or with the hint as a docstring and this line below"
    if not right and not set(header["diagnosis"]) & set(Diagnosis):
        said = header["diagnosis"] or ["nothing"]
        yield f"`# diagnosis:` must be {_NONE} or one of {', '.join(Diagnosis)}, and is {said[0]!r}"
    for name in sorted(given - {"or"}):
        if len(header[name]) > 1:
            yield f"the header has more than one `# {name}:`"
    if right != (path.parent.name == RIGHT):
        yield f"answers with `# diagnosis: {_NONE}` belong in a folder {RIGHT}/, and no others do"
    if not right and not docstring and _LATE_DOCSTRING.match(text):
        yield "a docstring that is the hint comes before the header"
    hinted = f"an answer with{'' if docstring else 'out'} its hint as a docstring"
    kind = "a right answer" if right else hinted
    unfit = _NAMES - _OF_THE_RIGHT if right else {"hint", "on"} if docstring else {"alike"}
    for name in sorted(given & unfit):
        yield f"{kind} has no `# {name}:`"
    for what in set(header["alike"]) - set(_ALIKE):
        yield f"`# alike:` must be one of {', '.join(_ALIKE)}, not {what!r}"
    for number in header["earns"]:
        if not re.fullmatch(r"\d+(\.\d+)?", number):
            yield f"`# earns:` must be a number, not {number!r}"


def _common_forms(folder: Path) -> list[str]:
    """Return what comes before the answers of a folder that speak, in each style of it."""
    path = folder / _COMMON
    if not path.exists():
        return [""]
    text = path.read_text(encoding="utf-8")
    _, header = _beginning(text)
    return [f"{one}\n" for one in _forms(path, text, header["or"])]


def _forms(path: Path, text: str, alternatives: Sequence[str]) -> list[str]:
    """Return a program, and it with other values of its constants: ``FIRST = 1; SECOND = 2``."""
    assigned: dict[str, list[ast.Assign]] = defaultdict(list)
    for node in ast.parse(text).body if alternatives else ():
        match node:
            case ast.Assign(targets=[target]):
                assigned[ast.get_source_segment(text, target) or ""].append(node)
    forms = [text]
    for values in alternatives:
        lines = text.split("\n")
        for assignment in values.split(";"):
            name = assignment.partition("=")[0].strip()
            if len(assigned[name]) != 1:
                raise DeclarationError(f"{path}: `{name} = …` must stand once outside of functions")
            (node,) = assigned[name]
            end = node.end_lineno or node.lineno
            # as many lines as before, so that the other assignments stay where they are
            lines[node.lineno - 1 : end] = [assignment.strip(), *[""] * (end - node.lineno)]
        forms.append("\n".join(lines))
    return forms
