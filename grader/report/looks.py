"""How outcomes look: one mark, one word and one colour each, the same in every report."""

from __future__ import annotations

from enum import Enum

from grader.core.verdict import Status

__all__ = ["Look"]

# JupyterLab's own colours, in either of its themes; elsewhere those of the page's scheme. Of its
# reds only this one can be read as text on both grounds.
_GREEN = "var(--jp-success-color0, light-dark(#1b5e20, #8fdcae))"
_RED = "var(--jp-error-color1, light-dark(#b71c1c, #ff9f8c))"
_AMBER = "var(--jp-warn-color0, light-dark(#8a5300, #f0c568))"


class Look(str, Enum):
    """How an exercise, a case or a check of this machine came out.

    The value is also the name of the CSS class on an instructor's pages
    (``classroom/assets/page.css``), where backgrounds differ and not the text.

    Attributes:
        mark: one character, so that nothing is told by colour alone.
        word: what it is called.
        terminal: its style in :mod:`rich`.
        colour: its colour in HTML.
    """

    mark: str
    word: str
    terminal: str
    colour: str

    def __new__(cls, value: str, mark: str, word: str, terminal: str, colour: str) -> Look:
        """Make a member whose value is the name alone."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.mark, member.word = mark, word
        member.terminal, member.colour = terminal, colour
        return member

    PASSED = "passed", "✓", "passed", "green", _GREEN
    PARTLY = "partly", "½", "some points", "red", _RED
    FAILED = "failed", "✗", "failed", "red", _RED
    HUNG = "hung", "∞", "hung", "red", _RED
    UNTOUCHED = (
        "empty",
        "○",
        "not attempted",
        "dim",
        "var(--jp-ui-font-color2, light-dark(#5f6368, #a3adb7))",
    )
    SKIPPED = "skipped", "–", "not judged here", "yellow", _AMBER
    ERROR = "error", "!", "the grader failed", "magenta", _AMBER

    __str__ = str.__str__

    @classmethod
    def of(cls, status: Status) -> Look:
        """Return the outcome that shows a status, where no more is told apart."""
        return cls[status.name]
