"""The kinds of worlds that an answer can be judged on: processes, or simulated ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grader.exercise.cases import Case
from grader.exercise.declaration import Exercise
from headcount.launch.backends import require_backend
from headcount.launch.launchers import Launcher
from headcount.launch.process_world import ProcessWorld, largest_world
from headcount.launch.world import World, WorldSpec
from headcount.simulation.launch import SimulationProcess
from headcount.simulation.simulation_world import SimulationWorld

__all__ = ["ProcessWorldFactory", "SimulationWorldFactory", "WorldFactory"]


class WorldFactory(Protocol):
    """A kind of world that answers are judged on."""

    def largest(self, launcher: Launcher) -> int | None:
        """Return the largest number of ranks that a world can have here, or None for any."""
        ...

    def obstacle(self, exercise: Exercise, cases: Sequence[Case]) -> str:
        """Return why cases of an exercise cannot be run on such worlds, or an empty string."""
        ...

    def open(self, launcher: Launcher, spec: WorldSpec) -> World:
        """Open a world, whose processes the launcher starts.

        Raises:
            WorldError: the processes cannot be started.
        """
        ...


class ProcessWorldFactory:
    """Makes worlds whose ranks are processes.

    Args:
        backend: what carries the messages, see :mod:`headcount.launch.backends`.

    Raises:
        RequestError: the backend cannot be used here; the message says the mend.
    """

    def __init__(self, backend: str = "gloo") -> None:
        self._backend = require_backend(backend)

    def largest(self, launcher: Launcher) -> int | None:
        """Return the largest number of ranks that the backend takes here, or None for any."""
        return largest_world(launcher, self._backend.name)

    def obstacle(self, exercise: Exercise, cases: Sequence[Case]) -> str:
        """Return why cases of an exercise cannot be run on the backend, or an empty string."""
        if not self._backend.survives and any(case.killed for case in cases):
            return f"a rank is killed, and on {self._backend.title} that ends the others, too"
        if exercise.on_cpu and self._backend.devices is not None:
            return f"its tensors are on the CPU, and {self._backend.title}'s are not"
        return ""

    def open(self, launcher: Launcher, spec: WorldSpec) -> World:
        """Start the processes of a world."""
        return ProcessWorld(
            launcher,
            spec.size,
            spec.program,
            spec.memory,
            spec.subgroups,
            backend=self._backend.name,
            wanted=spec.wanted,
            smaller=spec.smaller,
            collectives=spec.collectives,
            seed=spec.seed,
            set_orders=spec.set_orders,
            # other backends have no other place for their addresses
            storing=spec.storing or self._backend.name != "gloo",
            until=spec.until,
            weighed=spec.weighed,
        )


class SimulationWorldFactory:
    """Makes worlds whose ranks are simulated, all cases of a world in one process.

    It is for programs that can be trusted, such as the known answers of the grader's own tests:
    what a program does to torch or Python in one case stays for the next.  A student's answer is
    judged on real ranks, since only these show what gloo makes of it.
    """

    def largest(self, launcher: Launcher) -> int | None:
        """Return None: there can be any number of simulated ranks."""
        return None

    def obstacle(self, exercise: Exercise, cases: Sequence[Case]) -> str:
        """Return why cases of an exercise cannot be run on simulated ranks, or an empty string."""
        if exercise.compiled:
            return "a library is called, and simulated ranks call Python only"
        if any(case.killed or case.late or case.pauses for case in cases):
            return "a rank is killed, late or paused, and simulated ranks cannot be"
        return ""

    def open(self, launcher: Launcher, spec: WorldSpec) -> World:
        """Start the process that simulates the ranks of a world."""
        return SimulationWorld(SimulationProcess(launcher), spec.program, spec.memory, spec.seed)
