"""An ``mpiexec`` for every world on MPI.

``mpiexec`` starts processes and tells each of them, by its environment, where the others are
to be found.  Ranks are started by a launcher of ours, in milliseconds, so
``mpiexec`` starts a stub (``stub.py``) for each rank instead, and the rank is given the
environment of its stub.  This is how both MPICH's and Open MPI's process managers find a
process, whatever its parent is: MPICH's by PMI over a port, Open MPI's by PMIx.
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
from functools import lru_cache
from pathlib import Path

from headcount.core.errors import WorldError
from headcount.launch.backends import BackendEntry

__all__ = ["BACKEND", "MpiJob", "missing_mpi"]

#: Seconds in which ``mpiexec`` must have started the stubs, and in which it must have ended.
START, END = 30.0, 5.0

#: Seconds that the first look at this machine's MPI may take.
LOOK = 30.0

#: The variables in which a process manager gives a process its rank.
_RANK = ("PMI_ID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")

#: Open MPI starts neither as root nor with more ranks than cores, unless it is told to.
_WILLING = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}

#: A program that prints the size of its world.
_HOW = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"

_INSTALL = "python -m pip install 'mpi4py>=4.0' mpich"


def mpiexec_command() -> str | None:
    """Return the path of this environment's ``mpiexec``, else of this machine's."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


@lru_cache
def missing_mpi() -> str:
    """Return why no world can run on MPI here, or an empty string if one can."""
    if importlib.util.find_spec("mpi4py") is None:
        return f"mpi4py is not installed: {_INSTALL}"
    command = mpiexec_command()
    if command is None:
        return f"there is no mpiexec: {_INSTALL}"
    try:
        # the mpiexec of another MPI than mpi4py's starts every process as a world of one
        said, status = _look(
            [command, *mpiexec_options(command), "-n", "2", sys.executable, "-c", _HOW]
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command} does not work: {error}"
    if status or "".join(said.split()) != "22":
        lines = said.strip().splitlines() or [f"it ends with status {status}"]
        return f"{command} and mpi4py do not work together: {lines[0]}"
    return ""


def _look(command: Sequence[str]) -> tuple[str, int]:
    """Return what a command prints, and its exit status; it may take :data:`LOOK` seconds."""
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
def mpiexec_options(command: str) -> tuple[str, ...]:
    """Return the options that an ``mpiexec`` needs so that ranks on this machine find it."""
    said, _ = _look([command, "--version"])
    if "HYDRA" in said:
        # not by an inherited descriptor, nor by this machine's name, which may have no address
        return "-pmi-port", "-iface", "lo0" if sys.platform == "darwin" else "lo"
    return ("--oversubscribe",)


def short_folder() -> str | None:
    """Return a folder for a socket, whose path may have about 100 bytes; None for the usual one."""
    return "/tmp" if len(os.fsencode(tempfile.gettempdir())) > 60 else None


class MpiJob:
    """One ``mpiexec``, and the stubs that it has started.

    Args:
        size: the number of ranks.

    Attributes:
        environments: by rank, the variables that the rank needs to be found.

    Raises:
        WorldError: the stubs do not start.
    """

    def __init__(self, size: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._channels: list[socket.socket] = []
        try:
            self.environments = self._start(size)
        except BaseException:
            self.close()
            raise

    def _start(self, size: int) -> list[dict[str, str]]:
        """Start ``size`` stubs and return what each found in its environment, by rank."""
        command = mpiexec_command()
        assert command is not None
        given = {**os.environ, **_WILLING}
        with tempfile.TemporaryDirectory(prefix="gather-round-", dir=short_folder()) as folder:
            address = str(Path(folder) / "stubs")
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(address)
                listening.listen(size)
                stub = (sys.executable, "-I", "-S", str(Path(__file__).with_name("stub.py")))
                self._process = subprocess.Popen(
                    [command, *mpiexec_options(command), "-n", str(size), *stub, address],
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._output,
                    env=given,
                    start_new_session=True,
                )
                found = [self._accept(listening) for _ in range(size)]
        environments: dict[int, dict[str, str]] = {}
        for environment in found:
            rank = next((int(environment[key]) for key in _RANK if key in environment), -1)
            environments[rank] = {
                key: value for key, value in environment.items() if given.get(key) != value
            }
        if sorted(environments) != list(range(size)):
            raise WorldError(f"{command} has started ranks {sorted(environments)}")
        return [environments[rank] for rank in range(size)]

    def _accept(self, listening: socket.socket) -> dict[str, str]:
        """Wait for one stub and return its environment."""
        assert self._process is not None
        listening.settimeout(0.1)
        until = time.monotonic() + START
        while True:
            with contextlib.suppress(TimeoutError):
                channel, _ = listening.accept()
                break
            if self._process.poll() is not None or time.monotonic() > until:
                raise WorldError(f"mpiexec does not start ranks: {self._first_line()}")
        self._channels.append(channel)
        channel.settimeout(START)
        with channel.makefile("rb") as stream:
            found: dict[str, str] = json.loads(stream.readline())
        return found

    def _first_line(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        return lines[0] if lines else "it says nothing"

    def close(self) -> None:
        """Let the stubs end, and kill an ``mpiexec`` that does not."""
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


#: MPI, as headcount's launcher knows it.
BACKEND = BackendEntry(
    name="mpi",
    title="MPI",
    about="mpi4py and an MPI library, between CPUs",
    missing=missing_mpi,
    found=lambda: "mpi4py",
    transport="grader.course.mpi.transport",
    job=MpiJob,
)
