"""A live count of a check's cases, where a person watches: a notebook or a terminal.

It begins after half a second, and leaves nothing behind.  In a notebook the verdict takes its
place, so that what is saved is the verdict alone.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, TextIO

from grader.report.elements import element
from headcount.core.notebook import ipython_shell

__all__ = ["LiveCount", "Place", "starting"]

#: Seconds before the count is shown, and between two looks at it.
AFTER, EVERY = 0.5, 0.2


class Place:
    """The place of an output in a cell of a notebook, whose content can be replaced."""

    def __init__(self, content: Mapping[str, str]) -> None:
        from IPython.display import display

        self._handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._cell = ipython_shell().execution_count

    @property
    def here(self) -> bool:
        """Whether it is in the cell that runs now."""
        return bool(ipython_shell().execution_count == self._cell)

    def show(self, content: Mapping[str, str]) -> None:
        """Replace the displayed output; empty content clears it."""
        self._handle.update(dict(content), raw=True)


@contextlib.contextmanager
def starting(name: str, stream: TextIO | None = None) -> Iterator[None]:
    """Show on a terminal, at once, that a check starts; the line is gone at the end.

    No thread is started, so that the process can be forked meanwhile.
    """
    stream = sys.stderr if stream is None else stream
    if not _is_terminal(stream):
        yield
        return
    _write(stream, f"{name}: starting")
    try:
        yield
    finally:
        _write(stream, "")


class LiveCount:
    """A context in which a count is shown while it goes on.

    Attributes:
        place: where in the notebook it was shown, and the verdict can be; None if
            nothing was shown, or on a terminal.
    """

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self.place: Place | None = None
        self._name = name
        self._stream = sys.stderr if stream is None else stream
        self._done = self._of = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = ""

    def __call__(self, done: int, of: int) -> None:
        """Note how many cases are judged."""
        self._done, self._of = done, of

    def __enter__(self) -> LiveCount:
        show = self._in_notebook if _person_at_notebook() else self._on_terminal
        if show == self._in_notebook or _is_terminal(self._stream):
            # the thread's displays belong to this cell
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._watch, show), daemon=True
            )
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self.place is not None:
            self.place.show({})
        elif self._shown:
            _write(self._stream, "")

    @property
    def text(self) -> str:
        """The count, in words."""
        return f"{self._done} of {self._of} cases" if self._of else "starting"

    def _watch(self, show: Any) -> None:
        pause = AFTER
        while not self._ended.wait(pause):
            pause = EVERY
            if self.text != self._shown:
                self._shown = self.text
                show()

    def _in_notebook(self) -> None:
        if self.place is None:
            self.place = Place(self._content())
        else:
            self.place.show(self._content())

    def _content(self) -> Mapping[str, str]:
        most = max(self._of, 1)
        bar = element("progress", max=most, value=self._done, aria_label=self._name)
        style = "font-family: var(--jp-ui-font-family, system-ui, sans-serif)"
        page = element("div", bar, " ", element("b", self._name), f" {self.text}", style=style)
        return {"text/plain": f"{self._name}: {self.text}", "text/html": page}

    def _on_terminal(self) -> None:
        _write(self._stream, f"{self._name}: {self.text}")


def _write(stream: TextIO, text: str) -> None:
    """Replace the last line of a terminal."""
    width = 0
    with contextlib.suppress(OSError):  # the stream need not be the terminal it says it is
        width = os.get_terminal_size(stream.fileno()).columns
    width = width or 80  # 0 where it is not known
    with contextlib.suppress(OSError):
        stream.write(f"\r\x1b[K{text[: width - 1]}")
        stream.flush()


def _person_at_notebook() -> bool:
    """Return whether a kernel runs this for a person, who could be asked for an input."""
    # those who run notebooks by program, and keep or compare the outputs, take no input
    return bool(getattr(getattr(ipython_shell(), "kernel", None), "_allow_stdin", False))


def _is_terminal(stream: TextIO) -> bool:
    return os.environ.get("TERM") != "dumb" and stream.isatty()
