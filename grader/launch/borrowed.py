"""A launcher whose processes another one starts, for a backend of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psutil

from grader.launch.cpp_build import Workshop
from grader.launch.kernel_counters import Counts
from grader.launch.process_group_handle import Crew, Launcher, Setting

__all__ = ["Borrowed"]


class Borrowed:
    """Starts what another launcher starts, and has it speak another backend.

    Args:
        base: starts the processes.
        backend: what carries their messages, see :mod:`grader.rank.transports`.
        largest: most ranks of a world; ``None`` for no bound.
    """

    def __init__(self, base: Launcher, backend: str, largest: int | None = None) -> None:
        self._base: Any = base  # what its crews ask of it is not for other callers
        self._backend = backend
        self._largest = largest

    @property
    def setting(self) -> Setting:
        """As the base launcher's, but for the backend."""
        setting: Setting = self._base.setting
        return replace(setting, backend=self._backend)

    @property
    def largest(self) -> int | None:
        """Most ranks of a world."""
        return self._largest

    def launch(self, size: int) -> Crew:
        """Start the ranks of a world."""
        crew: Crew = self._base.launch(size)
        crew.owner = self
        return crew

    def notices(self, crew: Crew) -> int | None:
        """As the base launcher says."""
        return self._base.notices(crew)  # type: ignore[no-any-return]

    def poll(self, crew: Crew, patience: float = 0.0) -> None:
        """Learn which ranks have ended."""
        self._base.poll(crew, patience)

    def signal(self, crew: Crew, number: int) -> None:
        """Send a signal to every rank that still runs."""
        self._base.signal(crew, number)

    def processes(self, crew: Crew) -> dict[int, psutil.Process]:
        """The ranks that still run."""
        return self._base.processes(crew)  # type: ignore[no-any-return]

    def kill(self, crew: Crew) -> None:
        """End the ranks of a world."""
        self._base.kill(crew)

    def counts(self) -> Counts | None:
        """Nothing: what it would count is not all that is sent."""
        return None

    def workshop(self) -> Workshop:
        """The base launcher's."""
        return self._base.workshop()  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Wait until the processes of every closed world are gone."""
        self._base.settle()

    def close(self) -> None:
        """Nothing: the base launcher is somebody else's."""
