"""Ranks as fresh interpreters: seconds instead of milliseconds, and safe anywhere."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time

import psutil

from grader.core.errors import WorldError
from grader.launch.cpp_build import Workshop
from grader.launch.helper import start
from grader.launch.kernel_counters import Counts
from grader.launch.process_group_handle import Crew, Ends, Setting, living

__all__ = ["Spawner"]


class Spawner:
    """Starts every rank as a fresh interpreter: slow, and safe anywhere."""

    def __init__(self) -> None:
        self._processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._names = map(str, itertools.count(1))
        self._workshop: Workshop | None = None

    @property
    def setting(self) -> Setting:
        """As in this process."""
        return Setting.here()

    @property
    def largest(self) -> int | None:
        """No bound."""
        return None

    def launch(self, size: int) -> Crew:
        """Start the ranks of a world."""
        ends, name = Ends.make(size), next(self._names)
        processes: list[subprocess.Popen[bytes]] = []
        self._processes[name] = processes
        crew = Crew(ends.controls, ends.outputs, ends.faults, [], self, name)
        try:
            for rank in range(size):
                fds = ends.theirs[3 * rank : 3 * rank + 3]
                processes.append(start("grader.server.process", fds, subprocess.DEVNULL))  # type: ignore[arg-type]
                crew.pids.append(processes[-1].pid)
        except OSError as error:
            crew.close()
            raise WorldError(f"a rank could not be started: {error}") from error
        finally:
            ends.close_theirs()
        return crew

    def notices(self, crew: Crew) -> int | None:
        """Nothing tells; the supervisor polls."""
        return None

    def poll(self, crew: Crew, patience: float = 0.0) -> None:
        """Ask every process whether it has ended."""
        if patience:
            time.sleep(patience)
        for rank, process in enumerate(self._processes.get(crew.name, [])):
            status = process.poll()
            if status is not None:
                crew.statuses[rank] = status

    def signal(self, crew: Crew, number: int) -> None:
        """Send a signal to every rank of a world that still runs."""
        for process in self._processes.get(crew.name, []):
            # does nothing to one that has been reaped
            process.send_signal(number)

    def processes(self, crew: Crew) -> dict[int, psutil.Process]:
        """The ranks of a world that still run."""
        return living(crew.pids)

    def kill(self, crew: Crew) -> None:
        """Kill every process group of a world."""
        self._end(crew.name)

    def _end(self, name: str) -> None:
        processes = self._processes.pop(name, [])
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()

    def counts(self) -> Counts | None:
        """Nothing: others use the same network."""
        return None

    def workshop(self) -> Workshop:
        """Compiles what its ranks are to run."""
        if self._workshop is None:
            self._workshop = Workshop()
        return self._workshop

    def settle(self) -> None:
        """Nothing to wait for: :meth:`kill` has."""

    def close(self) -> None:
        """End every world."""
        for name in list(self._processes):
            self._end(name)
        if self._workshop is not None:
            self._workshop.close()
            self._workshop = None
