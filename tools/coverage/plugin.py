"""The pytest plugin that records which functions each test runs: ``-p tools.coverage.plugin``."""

from __future__ import annotations

import functools
import mmap
import os
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tools.coverage import marks
from tools.coverage.record import RECORD, write

#: The environment variable that holds the path of :mod:`tools.coverage.marks`.
_MARKER = "GATHER_ROUND_MARKER"

#: A file that every interpreter of this environment reads when it starts (see ``site``); tests
#: that start one give it paths of their own, and so it does not depend on them.
_AT_START = Path(sysconfig.get_path("purelib")) / "gather_round_marks.pth"

#: Its text, one line as such files want it.  Without a record it does nothing.
_START = (
    f"import os; os.path.exists(os.environ.get({_MARKER!r}, ''))"
    f" and __import__('runpy').run_path(os.environ[{_MARKER!r}])['start']()\n"
)


class _Recorder:
    """Says what has run meanwhile, in this process and in those that it starts."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="marks-")
        path = Path(self._folder.name) / "marks"
        path.write_bytes(bytes(marks.SIZE))
        os.environ[marks.MARKS] = str(path)
        os.environ[_MARKER] = str(marks.__file__)
        # where the environment cannot be written to, what other interpreters run is not recorded
        with suppress(OSError):
            if not _AT_START.exists() or _AT_START.read_text() != _START:
                whole = _AT_START.with_suffix(f".{os.getpid()}")  # two processes may write it
                whole.write_text(_START)
                whole.replace(_AT_START)
        found = marks.start()
        assert found is not None
        self._marks: mmap.mmap = found
        self._profile = sys.getprofile()
        #: What has run in the test, in the setup of a fixture in it, and so on inwards.
        self._open: list[set[int]] = []
        #: By folder or file and name, what the setup of a fixture that tests share has run.
        self.fixtures: dict[tuple[str, str], set[int]] = {}

    @contextmanager
    def ran(self) -> Iterator[set[int]]:
        """Give a set that holds, at the end, the numbers of the functions that ran meanwhile."""
        self._take()
        # a test before may have ended it, as a RecursionError does
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)
        mine: set[int] = set()
        self._open.append(mine)
        try:
            yield mine
        finally:
            self._take()
            self._open.pop()
            if self._open:
                self._open[-1].update(mine)

    def _take(self) -> None:
        """Move what is marked to the innermost set."""
        if self._open:
            found, at = self._open[-1], self._marks.find(b"\1", 1)
            while at >= 0:
                found.add(at)
                at = self._marks.find(b"\1", at + 1)
        self._marks[:] = bytes(marks.SIZE)


@functools.cache
def _recorder() -> _Recorder:
    """Return the recorder of this process, which begins with its first test.

    Of pytest-xdist's processes the one that hands out the tests runs none.
    """
    return _Recorder()


#: The ids of tests that have failed.
_failed: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the path of the record."""
    parser.addoption("--record", type=Path, default=RECORD, help="file of what tests run")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note which tests fail."""
    if report.failed:
        _failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write what a test has run, the setup of its fixtures included, unless it is interrupted."""
    recorder = _recorder()
    started = time.monotonic()
    with recorder.ran() as ran:
        result = yield
    for (base, name), functions in recorder.fixtures.items():
        if name in getattr(item, "fixturenames", ()) and item.nodeid.startswith(base):
            ran |= functions
    group = item.get_closest_marker("xdist_group")
    # pytest-xdist adds the group to the id
    test = item.nodeid.removesuffix(f"@{group.args[0]}" if group and group.args else "@")
    seconds = time.monotonic() - started
    # one that has failed may not have come to what it runs otherwise
    write(item.config.getoption("--record"), test, seconds, ran, anew=item.nodeid not in _failed)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Keep what the setup of a fixture has run, for all tests that share it."""
    with _recorder().ran() as ran:
        result = yield
    if fixturedef.scope != "function":
        place = fixturedef.baseid, fixturedef.argname
        _recorder().fixtures.setdefault(place, set()).update(ran)
    return result
