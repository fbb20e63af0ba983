"""The pytest plugin that records which functions each test runs: ``-p tools.coverage.plugin``."""

from __future__ import annotations

import functools
import mmap
import os
import sysconfig
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.coverage import marks
from tools.coverage.marks import SIZE, VARIABLE
from tools.coverage.record import RECORD, write

#: A file that every interpreter of this environment reads when it starts (see ``site``); tests
#: that start one give it paths of their own, and so it does not depend on them.
_AT_START = Path(sysconfig.get_path("purelib")) / "gather_round_marks.pth"

#: Its text, one line as such files want it.  Without a record it does nothing.
_START = (
    f"import os; os.environ.get({VARIABLE!r})"
    f" and __import__('runpy').run_path({str(Path(marks.__file__))!r})['start']()\n"
)


class _Recorder:
    """Says what has run meanwhile, in this process and in those that it starts."""

    def __init__(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="marks-")
        path = Path(folder.name) / "marks"
        path.write_bytes(bytes(SIZE))
        os.environ[VARIABLE] = str(path)
        if not _AT_START.exists() or _AT_START.read_text() != _START:
            whole = _AT_START.with_suffix(f".{os.getpid()}")  # another process writes it as well
            whole.write_text(_START)
            whole.replace(_AT_START)
        found = marks.start()
        assert found is not None
        self._marks: mmap.mmap = found
        self._folder = folder
        #: What has run in the test, in the setup of a fixture in it, and so on inwards.
        self._open: list[set[int]] = []
        #: By name, what the setup of a fixture has run: several tests may share it.
        self.fixtures: dict[str, set[int]] = {}

    @contextmanager
    def ran(self) -> Iterator[set[int]]:
        """Give a set that holds, at the end, the numbers of the functions that ran meanwhile."""
        self._take()
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
        self._marks[:] = bytes(SIZE)


@functools.cache
def _recorder() -> _Recorder:
    """Return the recorder of this process, which begins with its first test.

    Of pytest-xdist's processes the one that hands out the tests runs none.
    """
    return _Recorder()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the path of the record."""
    parser.addoption("--record", type=Path, default=RECORD, help="file of what tests run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write what a test has run, the setup of its fixtures included."""
    recorder = _recorder()
    started = time.monotonic()
    try:
        with recorder.ran() as ran:
            return (yield)
    finally:
        for name in getattr(item, "fixturenames", ()):
            ran |= recorder.fixtures.get(name, set())
        group = item.get_closest_marker("xdist_group")
        # pytest-xdist adds the group to the id
        test = item.nodeid.removesuffix(f"@{group.args[0]}" if group and group.args else "@")
        write(item.config.getoption("--record"), test, time.monotonic() - started, ran)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Keep what a fixture's setup has run, for all tests that have it."""
    recorder = _recorder()
    try:
        with recorder.ran() as ran:
            return (yield)
    finally:
        recorder.fixtures.setdefault(fixturedef.argname, set()).update(ran)
