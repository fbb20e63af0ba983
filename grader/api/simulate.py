"""``simulate`` in a notebook: a simulation of :mod:`headcount`, with cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from grader.api.predictions import recall_prediction
from grader.api.runs import Run
from grader.api.session import fresh_seed, stoppable
from grader.api.written import written
from grader.exercise.declaration import Exercise
from grader.judge.simulated_checks import SimulatedOutcome, run_grown
from grader.submission.submission import Submission, live_program
from headcount import simulations
from headcount.core.errors import RequestError, is_ours
from headcount.core.resource_limits import DEFAULTS
from headcount.simulation.clusters import Cluster
from headcount.simulation.launch import MEMORY
from headcount.simulations import cluster_of, require_ranks

__all__ = ["SimulatedRun", "cluster_of", "simulate", "simulate_answer"]

__tracebackhide__ = is_ours


class SimulatedRun(simulations.SimulatedRun, Run):
    """The value of :func:`simulate`: the results in rank order, and the virtual costs."""


@written("simulate(broadcast, 1024)")
def simulate(
    function: Callable[..., Any],
    ranks: int,
    *arguments: Any,
    cluster: str | Cluster | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    eager: int = -1,
    algorithms: Mapping[str, str] = MappingProxyType({}),
    record: bool | None = None,
    seconds: float = DEFAULTS.simulation,
    may_fail: bool = False,
    seed: int | None = None,
    semantics: str = "gloo",
) -> SimulatedRun:
    """Run a function on simulated ranks: as many as you like, in one process.

    It is the same function that :func:`grader.run` takes; only the time is that of a
    model.  A message of S bytes takes α + S·β; a rank has one port to send and one to
    receive; computing takes no time, but ``time.sleep`` does.

    Args:
        function: called as ``function(*arguments)`` on every rank.
        ranks: how many.
        arguments: the same for every rank.
        cluster, alpha, beta, eager, algorithms, record, seconds, may_fail, seed, semantics: as of
            :func:`headcount.simulate`.

    Raises:
        RunFailed: a rank raised, or ranks wait for each other.
        RequestError: the numbers, the cluster or the algorithms make no sense; or the semantics
            do not, or need a record that is not there.
    """
    recall_prediction()
    call = simulations.SimulatedCall(
        program=live_program(function, *arguments),
        name=getattr(function, "__name__", "function"),
        ranks=ranks,
        cluster=cluster,
        alpha=alpha,
        beta=beta,
        eager=eager,
        algorithms=algorithms,
        record=record,
        seconds=seconds,
        seed=seed,
        semantics=semantics,
    )
    return call.on_ranks(SimulatedRun, may_fail)


def simulate_answer(
    path: str,
    exercise: Exercise,
    catalogue: Mapping[str, Exercise],
    ranks: int,
    cluster: Cluster,
    *,
    eager: int = -1,
    algorithms: Mapping[str, str] = MappingProxyType({}),
    seed: int | None = None,
    seconds: float = DEFAULTS.simulated_answer,
) -> SimulatedOutcome:
    """Run the answer of a file on simulated ranks, and judge what they hold.

    Args:
        path: a ``.py`` file or a notebook.
        exercise: which of its answers.
        catalogue: the exercises of the course.
        ranks: how many.
        cluster: says what messages cost.
        eager, algorithms: as in :func:`simulate`.
        seed: of the inputs; a fresh one if not given.
        seconds: of the wall clock after which the run has failed.

    Raises:
        RequestError: the file does not define it, or it needs more ranks.
        UnreadableFile: the path is no submission.
    """
    require_ranks(ranks)
    if ranks < min(exercise.world_sizes):
        raise RequestError(f"{exercise.name} needs at least {min(exercise.world_sizes)} ranks")
    if ranks > max(exercise.world_sizes) == 1:
        raise RequestError(f"{exercise.name} runs on one rank, and sends nothing")
    if exercise.traffic.proof is not None and exercise.traffic.growth is None:
        raise RequestError(
            f"{exercise.name} is judged by what real ranks do, and when: use `check`; `headcount"
            " simulate` runs any function on simulated ranks"
        )
    submission = Submission.from_file(Path(path), catalogue)
    if exercise.name not in submission.names:
        fault = submission.broken.get(exercise.name)
        why = f": line {fault.line}: {fault.message}" if fault else ""
        raise RequestError(f"{path} does not define {exercise.name}{why}")
    with stoppable() as launcher:
        return run_grown(
            launcher,
            exercise,
            submission.program,
            ranks,
            cluster,
            fresh_seed() if seed is None else seed,
            seconds,
            MEMORY,
            eager=eager,
            algorithms=algorithms,
        )
