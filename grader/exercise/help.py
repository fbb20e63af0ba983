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
where no mistake is recognised.  A text has paragraphs, lists and code, which is fenced or, after an
empty line, indented by four spaces; other marks are shown as they are.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from grader.errors import DeclarationError
from headcount.core.verdict import Diagnosis

__all__ = ["Help", "Section", "read_help", "sections"]

_HINT = re.compile(r"Hint (\d+)")

# what stands in a line is shown as it is written
_MARKDOWN = MarkdownIt("zero").enable(["heading", "list", "fence", "code"]).disable("inline")


def _has_code(text: str) -> bool:
    return any(line.startswith("    ") for line in text.splitlines())


@dataclass(frozen=True)
class Help:
    """The help that an exercise gives.

    Attributes:
        hints: from the gentlest to the plainest; a line of them is a paragraph, an entry of a list,
            or code, which is indented by four spaces.
        advice: by diagnosis, where no mistake is recognised.
    """

    hints: tuple[str, ...] = ()
    advice: Mapping[Diagnosis, str] = field(default_factory=dict)

    @property
    def tells_all(self) -> bool:
        """Whether the last hint is the whole answer, of which a learner is warned before."""
        return len(self.hints) > 1 and _has_code(self.hints[-1])


@dataclass(frozen=True)
class Section:
    """A text under its headings.

    Attributes:
        place: the file and the line of its heading.
        names: the exercises that it belongs to.
        title: ``Hint 1``, or the word for a diagnosis.
        text: the text, as a hint is shown.
        lines: the lines of the file that it takes, counted from 0.
    """

    place: str
    names: tuple[str, ...]
    title: str
    text: str
    lines: slice

    @property
    def is_answer(self) -> bool:
        """Whether it is a hint with code."""
        return bool(_HINT.fullmatch(self.title)) and _has_code(self.text)


def read_help(path: Path) -> dict[str, Help]:
    """Return the help in a file, by exercise.

    Raises:
        DeclarationError: the file is not as this module describes it; the message names the line.
    """
    hints: dict[str, list[str]] = {}
    advice: dict[str, dict[Diagnosis, str]] = {}
    for section in sections(path):
        place, title = section.place, section.title
        for name in section.names:
            ladder, known = hints.setdefault(name, []), advice.setdefault(name, {})
            if found := _HINT.fullmatch(title):
                if int(found[1]) != len(ladder) + 1:
                    wanted = f"Hint {len(ladder) + 1}"
                    raise DeclarationError(f"{place}: {wanted} of {name} comes next, not {title}")
                ladder.append(section.text)
            elif title not in set(Diagnosis):
                raise DeclarationError(f"{place}: {title!r} is neither a hint nor a diagnosis")
            elif Diagnosis(title) in known:
                raise DeclarationError(f"{place}: {name} has advice on {title} already")
            else:
                known[Diagnosis(title)] = section.text
    return {name: Help(tuple(ladder), advice[name]) for name, ladder in hints.items()}


def sections(path: Path) -> Iterator[Section]:
    """Yield the sections of a file.

    Raises:
        DeclarationError: a text stands under no exercise or no title, or a heading has no text.
    """
    source = path.read_text(encoding="utf-8")
    parts: list[tuple[str, str, int, list[SyntaxTreeNode]]] = [("", "", 0, [])]
    for block in SyntaxTreeNode(_MARKDOWN.parse(source)).children:
        if block.type == "heading":
            parts.append((block.markup, block.children[0].content, _first_line(block), []))
        else:
            parts[-1][-1].append(block)
    ends = [line for _, _, line, _ in parts[1:]] + [len(source.splitlines())]
    names: tuple[str, ...] = ()
    for (marks, title, line, blocks), end in zip(parts, ends, strict=True):
        place, text = f"{path}:{line + 1}", _text(blocks)
        if marks == "#":
            names = tuple(name.strip() for name in title.split(","))
        if marks != "##":
            if text or len(marks) > 2:
                raise DeclarationError(f"{place}: a text needs a heading, such as `## Hint 1`")
        elif not names or not text:
            raise DeclarationError(
                f"{place}: {title} needs a text below it, and `# EXERCISE` above"
            )
        else:
            yield Section(place, names, title, text, slice(line + 1, end))


def _first_line(block: SyntaxTreeNode) -> int:
    return block.map[0] if block.map else 0


def _text(blocks: Sequence[SyntaxTreeNode]) -> str:
    """Return blocks as they are shown, an empty line between two paragraphs."""
    text, before = "", ""
    for block in blocks:
        two = before == block.type == "paragraph"
        text += "\n" * (bool(text) + two) + _shown(block)
        before = block.type
    return text


def _shown(block: SyntaxTreeNode) -> str:
    if block.type in ("code_block", "fence"):
        return textwrap.indent(block.content.rstrip(), "    ")
    if block.type in ("bullet_list", "ordered_list"):
        first = int(block.attrs.get("start", 1))
        marks = ("-" if block.type == "bullet_list" else f"{first + i}." for i in count())
        entries = (textwrap.indent(_text(entry.children), " ") for entry in block.children)
        return "\n".join(mark + entry for mark, entry in zip(marks, entries, strict=False))
    return " ".join(block.children[0].content.split())
