"""Ranks that are MPI's too: an ``mpiexec`` for every world.

``mpiexec`` starts processes and tells each of them, by its environment, where
the others are to be found.  Ours are started by the launcher of all worlds, in
milliseconds, so it starts an stub for each instead; what that was told is what
the rank is told.  This is how both MPICH's and Open MPI's process managers find
a process, whoever its parent is: MPICH's by PMI over a port, Open MPI's by PMIx.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from grader.core.errors import RequestError, WorldError
from grader.launch.cpp_build import CppBuilder
from grader.launch.kernel_counters import Counts
from grader.launch.process_group_handle import Launcher, ProcessGroupHandle, RankEnvironment

__all__ = ["Borrowed", "MpiLauncher", "missing"]


# A launcher whose processes another one starts, for a backend of its own. ---------


class Borrowed:
    """Starts what another launcher starts, and has it speak another backend.

    Args:
        base: starts the processes.
        backend: what carries their messages, see :mod:`grader.rank.transports`.
        largest: most ranks of a world; ``None`` for no bound.
    """

    def __init__(self, base: Launcher, backend: str, largest: int | None = None) -> None:
        self._base: Any = base  # what its process groups ask of it is not for other callers
        self._backend = backend
        self._largest = largest

    @property
    def setting(self) -> RankEnvironment:
        """As the base launcher's, but for the backend."""
        setting: RankEnvironment = self._base.setting
        return replace(setting, backend=self._backend)

    @property
    def largest(self) -> int | None:
        """Most ranks of a world."""
        return self._largest

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start the ranks of a world."""
        handle: ProcessGroupHandle = self._base.launch(size)
        handle.owner = self
        return handle

    def notices(self, handle: ProcessGroupHandle) -> int | None:
        """As the base launcher says."""
        return self._base.notices(handle)  # type: ignore[no-any-return]

    def poll(self, handle: ProcessGroupHandle, patience: float = 0.0) -> None:
        """Learn which ranks have ended."""
        self._base.poll(handle, patience)

    def signal(self, handle: ProcessGroupHandle, number: int) -> None:
        """Send a signal to every rank that still runs."""
        self._base.signal(handle, number)

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """The ranks that still run."""
        return self._base.processes(handle)  # type: ignore[no-any-return]

    def kill(self, handle: ProcessGroupHandle) -> None:
        """End the ranks of a world."""
        self._base.kill(handle)

    def counts(self) -> Counts | None:
        """Nothing: what it would count is not all that is sent."""
        return None

    def workshop(self) -> CppBuilder:
        """The base launcher's."""
        return self._base.workshop()  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Wait until the processes of every closed world are gone."""
        self._base.settle()

    def close(self) -> None:
        """Nothing: the base launcher is somebody else's."""


# mpiexec. -------------------------------------------------------------------------

#: Seconds in which ``mpiexec`` must have started the stubs, and in which it must have ended.
START, END = 30.0, 5.0

#: Seconds that the first look at this machine's MPI may take.
LOOK = 30.0

#: What the process managers call a rank in its environment.
_RANK = ("PMI_ID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")

#: Open MPI starts neither as root nor with more ranks than cores, unless told to.
_WILLING = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}

#: Prints the size of its world.
_HOW = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"

_INSTALL = "python -m pip install 'mpi4py>=4.0' mpich"


def _command() -> str | None:
    """The ``mpiexec`` of this environment, else of this machine."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


@lru_cache
def missing() -> str:
    """Why there can be no world on MPI here; empty if there can."""
    if importlib.util.find_spec("mpi4py") is None:
        return f"mpi4py is not installed: {_INSTALL}"
    command = _command()
    if command is None:
        return f"there is no mpiexec: {_INSTALL}"
    try:
        # another MPI's mpiexec starts every process as a world of one
        said, status = _look([command, *_options(command), "-n", "2", sys.executable, "-c", _HOW])
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command} does not work: {error}"
    if status or "".join(said.split()) != "22":
        lines = said.strip().splitlines() or [f"it ends with status {status}"]
        return f"{command} and mpi4py do not work together: {lines[0]}"
    return ""


def _look(command: Sequence[str]) -> tuple[str, int]:
    """What a command prints, and its exit status; nothing of it outlives its time."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **_WILLING},
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=LOOK)[0], process.returncode
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@lru_cache
def _options(command: str) -> tuple[str, ...]:
    """What an ``mpiexec`` has to be told so that ranks on this machine find it."""
    said, _ = _look([command, "--version"])
    if "HYDRA" in said:
        # not by an inherited descriptor, nor by this machine's name, which may have no address
        return "-pmi-port", "-iface", "lo0" if sys.platform == "darwin" else "lo"
    return ("--oversubscribe",)


class MpiLauncher(Borrowed):
    """Starts the ranks of worlds on MPI.

    Args:
        base: what starts their processes.

    Raises:
        RequestError: there is no MPI here; the message says the mend.
    """

    def __init__(self, base: Launcher) -> None:
        reason = missing()
        if reason:
            raise RequestError(f"no world on MPI: {reason}")
        super().__init__(base, "mpi")
        self._jobs: dict[str, _MpiJob] = {}

    def launch(self, size: int) -> ProcessGroupHandle:
        """Start the ranks of a world, and the ``mpiexec`` that knows them."""
        handle = super().launch(size)
        job = self._jobs[handle.name] = _MpiJob()
        try:
            handle.surroundings = job.call(size)
        except WorldError:
            handle.close()
            raise
        return handle

    def kill(self, handle: ProcessGroupHandle) -> None:
        """End the ranks, and their ``mpiexec``."""
        super().kill(handle)
        job = self._jobs.pop(handle.name, None)
        if job is not None:
            job.close()

    def close(self) -> None:
        """End every ``mpiexec``."""
        for name in list(self._jobs):
            self._jobs.pop(name).close()


def _short() -> str | None:
    """A folder for a socket, whose path is limited to some hundred bytes, if not the usual one."""
    return "/tmp" if len(os.fsencode(tempfile.gettempdir())) > 60 else None


class _MpiJob:
    """One ``mpiexec``, and the stubs that it has started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._channels: list[socket.socket] = []

    def call(self, size: int) -> list[dict[str, str]]:
        """Have ``size`` stubs started; what each found in its environment, by rank.

        Raises:
            WorldError: they do not come.
        """
        command = _command()
        assert command is not None
        given = {**os.environ, **_WILLING}
        with tempfile.TemporaryDirectory(prefix="gather-round-", dir=_short()) as folder:
            address = str(Path(folder) / "ushers")
            with socket.socket(socket.AF_UNIX) as door:
                door.bind(address)
                door.listen(size)
                stub = (sys.executable, "-I", "-S", str(Path(__file__).with_name("mpi_stub.py")))
                self._process = subprocess.Popen(
                    [command, *_options(command), "-n", str(size), *stub, address],
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._output,
                    env=given,
                    start_new_session=True,
                )
                told = [self._admit(door) for _ in range(size)]
        surroundings: dict[int, dict[str, str]] = {}
        for environment in told:
            rank = next((int(environment[key]) for key in _RANK if key in environment), -1)
            surroundings[rank] = {
                key: value for key, value in environment.items() if given.get(key) != value
            }
        if sorted(surroundings) != list(range(size)):
            raise WorldError(f"{command} has started ranks {sorted(surroundings)}")
        return [surroundings[rank] for rank in range(size)]

    def _admit(self, door: socket.socket) -> dict[str, str]:
        """Wait for one stub."""
        assert self._process is not None
        door.settimeout(0.1)
        until = time.monotonic() + START
        while True:
            with contextlib.suppress(TimeoutError):
                channel, _ = door.accept()
                break
            if self._process.poll() is not None or time.monotonic() > until:
                raise WorldError(f"mpiexec does not start ranks: {self._last_words()}")
        self._channels.append(channel)
        channel.settimeout(START)
        with channel.makefile("rb") as stream:
            found: dict[str, str] = json.loads(stream.readline())
        return found

    def _last_words(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        return lines[0] if lines else "it says nothing"

    def close(self) -> None:
        """Let the stubs go, and end what does not."""
        for channel in self._channels:
            channel.close()
        if self._process is not None:
            try:
                self._process.wait(END)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._output.close()
