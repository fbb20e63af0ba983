"""A world whose ranks are simulated in one process."""

from __future__ import annotations

import time
from dataclasses import replace

from grader.core.program import Program
from grader.core.verdict import Diagnosis, Failure
from grader.launch.simulation import EVENTS, MEMORY, SimulationProcess
from grader.launch.world import Job, Outcome
from grader.simulation.clusters import Flat
from grader.trace.trace import Trace

__all__ = ["SimulationWorld"]


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
        recorded: the largest number of events of a job, which fails if it has more; with 0 there is
            no record, which is faster.
    """

    def __init__(
        self,
        process: SimulationProcess,
        program: Program,
        memory: int = MEMORY,
        seed: int = 0,
        recorded: int = EVENTS,
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
        started = time.monotonic()
        run = self._process.run(
            self._program,
            job,
            Flat(*(job.network or (0.0, 0.0))),
            recorded=self._recorded,
            memory=self._memory,
            policy=job.policy,
            seed=self._seed,
        )
        failure = run.failure
        if failure is None and run.overflow:
            message = f"the ranks make more than {self._recorded:,} calls in all"
            failure = Failure(Diagnosis.TOO_MANY_MESSAGES, message)
        # on the virtual clock a collective is the messages it consists of, elsewhere one call
        trace = (run.calls if job.network is None else run.trace) or Trace(
            ((),) * len(job.arguments)
        )
        if job.network is not None:
            trace = replace(trace, virtual_seconds=run.seconds)
        output = (run.output,) if run.output else ()
        return Outcome(run.results, failure, trace, output, time.monotonic() - started)

    def close(self) -> None:
        """End the process of the ranks."""
        self._process.close()

    def __enter__(self) -> SimulationWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
