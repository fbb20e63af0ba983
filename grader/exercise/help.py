"""The help that an exercise gives, read from the text beside its chapter.

It is Markdown, one file a chapter in ``grader/course/help/``, that a teacher edits without Python::

    # broadcast

    ## Hint 1

    Only one rank has something to send. Which?

    ## Hint 2

    …

    ## wrong_type

    broadcast works in place and returns nothing.

    # broadcast, tree_broadcast

    ## too_many_messages

    n − 1 messages are enough.

A heading with ``#`` names the exercises that what follows belongs to.  Below it, hints are numbered
from the gentlest to the plainest, and advice stands under the word for a diagnosis: what is said
where no mistake is recognised.  Lines of a paragraph are joined; what is indented by four spaces is
code, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.errors import DeclarationError
from headcount.core.verdict import Diagnosis

__all__ = ["Help", "read_help"]

_HEADING = re.compile(r"^(##?) (.*)$", re.M)
_HINT = re.compile(r"Hint (\d+)")


@dataclass(frozen=True)
class Help:
    """The help that an exercise gives.

    Attributes:
        hints: from the gentlest to the plainest.
        advice: by diagnosis, where no mistake is recognised.
    """

    hints: tuple[str, ...] = ()
    advice: Mapping[Diagnosis, str] = field(default_factory=dict)

    @property
    def tells_all(self) -> bool:
        """Whether the last hint is the whole answer, of which a learner is warned before."""
        return len(self.hints) > 1 and "\n    " in self.hints[-1]


def read_help(path: Path) -> dict[str, Help]:
    """Return the help in a file, by exercise.

    Raises:
        DeclarationError: the file is not as this module describes it; the message names the line.
    """
    hints: dict[str, list[str]] = {}
    advice: dict[str, dict[Diagnosis, str]] = {}
    for place, names, title, text in _sections(path):
        for name in names:
            ladder, known = hints.setdefault(name, []), advice.setdefault(name, {})
            if found := _HINT.fullmatch(title):
                if int(found[1]) != len(ladder) + 1:
                    wanted = f"Hint {len(ladder) + 1}"
                    raise DeclarationError(f"{place}: {wanted} of {name} comes next, not {title}")
                ladder.append(text)
            elif title not in set(Diagnosis):
                raise DeclarationError(f"{place}: {title!r} is neither a hint nor a diagnosis")
            elif Diagnosis(title) in known:
                raise DeclarationError(f"{place}: {name} has advice on {title} already")
            else:
                known[Diagnosis(title)] = text
    return {name: Help(tuple(ladder), advice[name]) for name, ladder in hints.items()}


def _sections(path: Path) -> Iterator[tuple[str, list[str], str, str]]:
    """Yield each section: its place, the exercises and the title it stands under, and its text.

    Raises:
        DeclarationError: a text stands under no exercise or no title, or a heading has no text.
    """
    before, *parts = _HEADING.split(path.read_text(encoding="utf-8"))
    names: list[str] = []
    line = 1 + before.count("\n")
    texts = [("", "", before), *zip(parts[::3], parts[1::3], parts[2::3], strict=True)]
    for number, (marks, title, text) in enumerate(texts):
        place = f"{path}:{line if number else 1}"
        line += text.count("\n") if number else 0
        if marks == "#":
            names = [name.strip() for name in title.split(",")]
        if marks != "##":
            if text.strip():
                raise DeclarationError(f"{place}: a text needs a heading, such as `## Hint 1`")
        elif not names or not text.strip():
            raise DeclarationError(
                f"{place}: {title} needs a text below it, and `# EXERCISE` above"
            )
        else:
            yield place, names, title.strip(), _joined(text)


def _joined(text: str) -> str:
    """Return a text as one paragraph, and the code after it as it is."""
    words, code, rest = text.partition("\n    ")
    return " ".join(words.split()) + f"{code}{rest}".rstrip()
