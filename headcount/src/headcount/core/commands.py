"""What every command of a command line needs: exit statuses, one clear line, and a quiet end.

A command may be started with closed streams, on a terminal that cannot show a check mark, into a
pipe whose reader has seen enough, on a full disk, and be stopped by Ctrl-C at any moment.  None of
that ends in a traceback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from headcount.core.errors import (
    HeadcountError,
    RequestError,
    is_shortage,
    require_temporary_folder,
    shortage,
)

__all__ = ["PIPE_CLOSED", "STOPPED", "say", "serve", "settle_press", "stop_if_pressed"]

#: The exit status of a program that ends because nobody reads its output: 128 and SIGPIPE.
PIPE_CLOSED = 141

#: The exit status after Ctrl-C.
STOPPED = 130

#: Whether Ctrl-C was pressed.  Its exception may be lost: where it hits a callback of Python's own,
#: such as that of a module's lock, Python prints it at most.
_pressed = threading.Event()


def _press(*_: object) -> NoReturn:
    """Note that Ctrl-C was pressed, and stop what is being done."""
    _pressed.set()
    raise KeyboardInterrupt


def settle_press() -> None:
    """Take note that the command has done what Ctrl-C asks of it, and ends by itself."""
    _pressed.clear()


def stop_if_pressed() -> None:
    """Stop now if Ctrl-C was pressed and the exception was lost."""
    if _pressed.is_set():
        raise KeyboardInterrupt


def serve(
    program: str,
    command: Callable[[], int],
    failed: int,
    refusal: Callable[[ModuleNotFoundError], str | None] = lambda error: None,
) -> int:
    """Serve one request, and return the exit status.

    Args:
        program: its name, before the line that says what is wrong.
        command: serves the request.
        failed: the exit status where the program itself has failed.
        refusal: returns what is said of a package that is not installed; None if that is no
            refusal, but a fault.
    """
    _pressed.clear()
    # another handler than Python's own, as in a test, stays
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # only the main thread may set one
            signal.signal(signal.SIGINT, _press)
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show ✓ gets \u2713 instead of a traceback
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _checked(command)
    except RequestError as error:
        say(program, str(error))
        return 2
    except HeadcountError as error:
        say(program, str(error))
        return failed
    except ModuleNotFoundError as error:
        missing = refusal(error)
        if missing is None:
            raise
        say(program, missing)
        return 2
    except UnicodeEncodeError as error:
        # a name or text of the command line, which is bytes
        say(program, f"{error.object[:200]!a} is not UTF-8: give another name or text")
        return 2
    except BrokenPipeError:
        # the reader, such as head, has seen enough
        _discard(1)
        return PIPE_CLOSED
    except OSError as error:
        lacking = _lacking(error)
        if not lacking:
            raise
        say(program, lacking)
        return 2
    except KeyboardInterrupt:
        say(program, "stopped; every rank has been ended")
        return STOPPED
    finally:
        if signal.getsignal(signal.SIGINT) is _press:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _checked(command: Callable[[], int]) -> int:
    """Serve a request whose output can be written, and return the exit status."""
    if sys.stdout is None:
        raise RequestError(
            "standard output is closed, and the result is written there; > FILE writes it to a"
            " file, and > /dev/null nowhere"
        )
    try:
        status = command()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich has seen it first
            raise BrokenPipeError from None
        sys.stdout.flush()  # of --help and --version
        raise
    sys.stdout.flush()
    stop_if_pressed()
    return status


def _open_standard_streams() -> None:
    """Open to nowhere those of the standard descriptors that are closed.

    The next file that is opened would get the number, and what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _discard(number: int) -> None:
    """Let what is still to be written to a descriptor go nowhere, also at Python's own end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def say(program: str, sentence: str) -> None:
    """Print a sentence on standard error, in one line, if it can be."""
    if sys.stderr is None:
        return
    try:
        print(f"{program}: {' '.join(sentence.split())}", file=sys.stderr, flush=True)
    except OSError:
        _discard(2)


def _lacking(error: OSError) -> str:
    """Return what the machine lacks where an exception says so, else an empty string."""
    try:
        require_temporary_folder()
    except RequestError as unusable:
        return str(unusable)
    try:
        os.write(1, b"\n")
    except OSError as again:
        _discard(1)
        return f"standard output cannot be written: {shortage(again)}"
    if not is_shortage(error):
        return ""
    return f"{error.filename}: {shortage(error)}" if error.filename else shortage(error)
