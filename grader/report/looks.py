"""How outcomes look: one mark, one word and one colour each, the same in every report."""

from __future__ import annotations

from enum import Enum

from grader.core.verdict import Status

__all__ = ["Look"]


class Look(str, Enum):
    """How an exercise, a case or a check of this machine came out.

    The value is also the name of the CSS class on an instructor's pages
    (``classroom/assets/page.css``), where backgrounds differ and not the text.

    Attributes:
        mark: one character, so that nothing is told by colour alone.
        word: what it is called.
        terminal: its style in :mod:`rich`.
        colour: its colour in a notebook: JupyterLab's own, with one for other front ends.
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

    PASSED = "passed", "✓", "passed", "green", "var(--jp-success-color0, #1b5e20)"
    PARTLY = "partly", "½", "some points", "red", "var(--jp-error-color0, #b71c1c)"
    FAILED = "failed", "✗", "failed", "red", "var(--jp-error-color0, #b71c1c)"
    HUNG = "hung", "∞", "hung", "red", "var(--jp-error-color0, #b71c1c)"
    UNTOUCHED = "empty", "○", "not attempted", "dim", "inherit"
    SKIPPED = "skipped", "–", "not judged here", "yellow", "var(--jp-warn-color0, #8a5300)"
    ERROR = "error", "!", "the grader failed", "magenta", "var(--jp-warn-color0, #8a5300)"

    __str__ = str.__str__

    @classmethod
    def of(cls, status: Status) -> Look:
        """Return the outcome that shows a status, where no more is told apart."""
        return cls[status.name]
