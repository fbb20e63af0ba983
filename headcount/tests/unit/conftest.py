"""No test here starts a process, so that all of them can be run at every save."""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess

import pytest


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a test in tests/unit starts a process; it belongs in tests/ranks")

    for owner, name in (
        *((os, "fork"), (os, "posix_spawn"), (os, "posix_spawnp"), (os, "system")),
        *((subprocess.Popen, "__init__"), (multiprocessing.process.BaseProcess, "start")),
    ):
        monkeypatch.setattr(owner, name, refuse)


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Look for no process, of which there is none: that takes longer than most tests here."""
