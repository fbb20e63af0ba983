"""A world whose ranks are simulated in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from headcount.core.program import Program
from headcount.core.verdict import Diagnosis, Failure
from headcount.launch.world import Job, Outcome
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import EVENTS, MEMORY, Simulation, SimulationProcess
from headcount.trace.trace import Trace

__all__ = ["SimulationWorld", "outcome_of"]


class SimulationWorld:
    """A world of simulated ranks, as many as a job has arguments for.

    They load the program anew for each job.  A job that names a network is recorded message by
    message, on the virtual clock of that network.  Any other is run on a network that costs
    nothing, and its trace has the calls of the program, as that of real ranks has.  What the judge
    does from outside is left out: no rank is killed, late or paused, and no library is called.

    Args:
        process: runs the ranks; it is closed with the world, unless worlds of several programs
            share it.
        program: the code of the answer.
        memory: bytes that all ranks together may allocate.
        seed: the seed of the random numbers that the program draws, on each rank its own.
        recorded: whether there is a record of each job, which fails if it has too many calls;
            without one the trace is empty, and a job is faster.
    """

    def __init__(
        self,
        process: SimulationProcess,
        program: Program,
        memory: int = MEMORY,
        seed: int = 0,
        recorded: bool = True,
    ) -> None:
        self._process = process
        self._program = program
        self._memory = memory
        self._seed = seed
        self._recorded = recorded

    @property
    def usable(self) -> bool:
        """Whether it can run another job: as long as its process answers."""
        return self._process.usable

    def run(self, job: Job) -> Outcome:
        """Run a job on simulated ranks."""
        return self.begin(job)()

    def begin(self, job: Job) -> Callable[[], Outcome]:
        """Begin to run a job, and return a function that waits for its outcome.

        It must be called before the process runs anything else.
        """
        started = time.monotonic()
        finish = self._process.begin(
            self._program,
            job,
            Flat(*(job.network or (0.0, 0.0))),
            recorded=EVENTS if self._recorded else 0,
            memory=self._memory,
            policy=job.policy,
            seed=self._seed,
        )
        return lambda: replace(outcome_of(finish(), job), seconds=time.monotonic() - started)

    def close(self) -> None:
        """End the process of the ranks."""
        self._process.close()

    def __enter__(self) -> SimulationWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def outcome_of(simulation: Simulation, job: Job) -> Outcome:
    """Return the outcome of a job on simulated ranks; its ``seconds`` are virtual ones."""
    failure = simulation.failure
    if failure is None and simulation.overflow:
        message = f"the ranks make more than {EVENTS:,} calls in all"
        failure = Failure(Diagnosis.TOO_MANY_MESSAGES, message)
    # on the virtual clock a collective is the messages it consists of, elsewhere one call
    trace = simulation.calls if job.network is None else simulation.trace
    trace = trace or Trace(((),) * len(job.arguments))
    if job.network is not None:
        trace = replace(trace, virtual_seconds=simulation.seconds)
    output = (simulation.output,) if simulation.output else ()
    return Outcome(simulation.results, failure, trace, output, simulation.seconds)
