"""No test here starts a process, so that all of them can be run at every save."""

from __future__ import annotations

import pytest

from support.processes import refuse_processes


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_processes(monkeypatch)


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Look for no process, of which there is none: that takes longer than most tests here."""
