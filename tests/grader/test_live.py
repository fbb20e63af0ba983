"""The live count on a terminal; in a notebook it is tested in a kernel (test_kernel.py)."""

from __future__ import annotations

import io
import threading

import pytest

from grader.report import live
from grader.report.live import LiveCount, starting


class Terminal(io.StringIO):
    """A terminal that says when a text has been written to it."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited = awaited
        self.seen = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.awaited in text:
            self.seen.set()
        return written


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "AFTER", 0.0)
    monkeypatch.setattr(live, "EVERY", 0.001)
    monkeypatch.delenv("TERM", raising=False)


def test_a_terminal_counts_on_one_line_and_ends_with_it_empty() -> None:
    stream = Terminal("43 of 97")
    with LiveCount("ring", stream) as count:
        count(43, 97)
        assert stream.seen.wait(30)
    assert "\n" not in stream.getvalue()
    assert "\r\x1b[Kring: 43 of 97 cases" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_check_says_at_once_that_it_starts() -> None:
    """Nothing is started for it: after this the process is forked."""
    stream, before = Terminal("starting"), threading.active_count()
    with starting("ring", stream):
        assert stream.getvalue() == "\r\x1b[Kring: starting"
        assert threading.active_count() == before
    assert stream.getvalue().endswith("\r\x1b[K")


def test_the_line_is_cleared_when_the_check_is_stopped() -> None:
    stream = Terminal("starting")

    def stopped() -> None:
        with LiveCount("ring", stream):
            assert stream.seen.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_written_where_nobody_watches() -> None:
    stream = io.StringIO()
    with LiveCount("ring", stream) as count:
        count(1, 2)
    assert stream.getvalue() == ""


def test_a_terminal_that_cannot_move_back_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal("never")
    with LiveCount("ring", stream) as count:
        count(1, 2)
    assert stream.getvalue() == ""
