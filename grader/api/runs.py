"""Runs a function on every rank of a fresh world, in all orders of arrival that matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, overload

from grader.api.session import fresh_seed, stoppable
from grader.core.errors import RequestError, RunFailed, is_ours
from grader.core.notebook import display_in_notebook, is_kernel
from grader.core.outline import about_hash_seeds, outline_live
from grader.core.resource_limits import DEFAULTS, valid_sizes
from grader.core.semantics import Semantics, semantics_named
from grader.core.source_locations import live_line, with_source
from grader.core.values import show
from grader.core.verdict import ArrivalOrders, Failure
from grader.exercise.cases import Kill
from grader.launch.backends import entry_of
from grader.launch.process_world import ProcessWorld
from grader.launch.simulation import Simulation
from grader.launch.world import Job, Outcome, RankResult, omission
from grader.report.changes import (
    ChangedArgument,
    changed_arguments,
    nothing_returned,
    traffic_words,
)
from grader.report.html import failure_html, run_html
from grader.report.summary import failure_text, in_words
from grader.report.text import failure_report, plain, run_report
from grader.submission.submission import live_program
from grader.trace.nccl_semantics import nccl_fault
from grader.trace.trace import Trace
from grader.trace.wildcard_schedules import Exploration, WildcardPolicy, named_race

__all__ = [
    "Run",
    "in_all_orders",
    "note_on_seed",
    "run",
    "run_failed",
]

__tracebackhide__ = is_ours

#: Orders of arrival that :func:`run` tries, and seconds for those after the first.
_ORDERS, _EXPLORING = 8, 1.0

_Ran = TypeVar("_Ran", Outcome, Simulation)


class _FailureCard:
    """Why a run failed, as it is shown."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __repr__(self) -> str:
        return plain(failure_report(self._failure))

    def _repr_html_(self) -> str:
        return failure_html(self._failure)

    def show(self) -> str:
        """Show it in the cell that runs, and return what is left to say; nothing elsewhere."""
        if not is_kernel():
            return ""  # a terminal shows no more than text, once
        display_in_notebook(self)
        return f"{in_words(self._failure.diagnosis)}, as shown above"


def run_failed(failure: Failure) -> RunFailed:
    """Return the exception for a failed run, which a notebook shows as a card."""
    return RunFailed(failure_text(failure), failure, _FailureCard(failure).show)


class Run(Sequence[Any]):
    """The value of :func:`run`: the results in rank order, and the record of the run.

    It is shown as what the ranks returned; where that is nothing, as what became of the function's
    arguments.  What was sent is below it.

    Attributes:
        output: what each rank printed.
        failure: why the run failed, or ``None``.
        orders: how many orders of arrival were tried, of how many that are known;
            ``None`` if there is only one.
        killed: the rank that was killed on request, if one was; its result is ``None``.
        seed: the seed of the ranks' random numbers, of which each rank draws its own.
    """

    def __init__(
        self,
        results: Sequence[RankResult],
        trace: Trace,
        output: Sequence[str],
        failure: Failure | None,
        orders: ArrivalOrders | None = None,
        killed: int | None = None,
        seed: int | None = None,
        arguments: int = 0,
    ) -> None:
        self._ranks = tuple(results)
        self._results = tuple(result.value for result in results)
        self._arguments = arguments
        self._trace = trace
        self.output = tuple(output)
        self.failure = None if failure is None else with_source(failure, live_line)
        self.orders = orders
        self.killed = killed
        self.seed = seed

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        self._require_success()
        return self._results[index]

    def __len__(self) -> int:
        self._require_success()
        return len(self._results)

    def __iter__(self) -> Iterator[Any]:
        self._require_success()
        return iter(self._results)

    @property
    def trace(self) -> Trace:
        """The record of every message, see :class:`grader.trace.trace.Trace`."""
        return self._trace

    def _require_success(self) -> None:
        if self.failure is not None:
            raise run_failed(self.failure)

    @cached_property
    def _parts(self) -> tuple[str, list[ChangedArgument], str]:
        """A run that returned nothing, in the parts that are shown."""
        changed, sent = changed_arguments(self._ranks), traffic_words(self._trace)
        return nothing_returned(self._ranks, self._arguments, changed, sent), changed, sent

    def __repr__(self) -> str:
        if self.failure is not None:
            return repr(_FailureCard(self.failure))
        if self._is_empty:
            return plain(run_report(*self._parts))
        lines = [
            f"rank {rank}: {'killed' if rank == self.killed else show(v, 160)}"
            for rank, v in enumerate(self._results)
        ]
        # what others still sent to a rank that was killed differs from run to run
        sent = traffic_words(self._trace) if self.killed is None else ""
        return "\n".join([*lines, sent] if sent else lines)

    @property
    def _is_empty(self) -> bool:
        """Whether no rank returned anything, as functions do that work in place."""
        return self.killed is None and all(value is None for value in self._results)

    def _repr_html_(self) -> str | None:
        if self.failure is not None:
            return _FailureCard(self.failure)._repr_html_()
        # plain text needs no card
        return run_html(*self._parts) if self._is_empty and self._parts[1] else None


def run(
    function: Callable[..., Any],
    world_size: int,
    *arguments: Any,
    seconds: float = DEFAULTS.run,
    may_fail: bool = False,
    backend: str = "gloo",
    kill: tuple[int, int] | None = None,
    seed: int | None = None,
    semantics: str = "gloo",
) -> Run:
    """Run a function on every rank of a fresh world of processes.

    The process group is set up: inside, ``dist.get_rank()`` and everything
    else of ``torch.distributed`` works, on gloo unless you say otherwise.
    What ranks print is shown in rank order when all have ended, and warnings after it.
    Displayed, the value is what the ranks returned; where that is nothing, what became of the
    arguments, since the function may have worked in place; and below it what was sent.

    When no other operation can proceed, a receive from any rank takes the message of the
    highest rank that has sent one, so that a run gives the same result every time.  Where
    it could have taken another rank's message, a few further runs try that silently; if
    one of them fails, that run is shown, and the message names the receive that decides.

    Args:
        function: called as ``function(*arguments)`` on every rank.
        world_size: how many ranks.
        arguments: the same for every rank.
        seconds: wall clock after which the run has failed.
        may_fail: return a failed run instead of raising; for functions that
            are meant to go wrong.
        backend: what carries the messages: ``gloo``, ``mpi`` or ``nccl``, see
            :func:`grader.backends`.
        kill: a rank to kill, and the step at which it dies: 0 as it enters the function, and
            after that one for each operation that it begins, for each that is complete, and for
            each entry that it puts into the store; as it returns, if it makes fewer steps. On
            gloo only.
        seed: repeats the random numbers of an earlier run; fresh ones otherwise. Each rank
            draws its own, as processes do that ``torchrun`` starts.
        semantics: ``nccl`` fails a run that ends well if it could hang or fail on NCCL; see
            ``docs/nccl.md``.

    Raises:
        RunFailed: a rank raised, died, hung or broke a rule of communication.  A notebook shows
            the same card for it as for a failed run that is returned.
        RequestError: the function cannot be sent to other processes; or the
            backend is not to be had here; or there is no rank to kill; or there are no such
            semantics.
    """
    (size,) = valid_sizes([world_size])
    rules = semantics_named(semantics)
    killed = None if kill is None else _to_kill(kill, size, backend)
    name = getattr(function, "__name__", "function")
    program = live_program(function, *arguments)
    follows = bool(arguments)
    job = Job(name, ((),) * size, allowed=None, seconds=seconds, killed=killed, follows=follows)
    drawn = fresh_seed() if seed is None else seed
    with stoppable() as launcher:

        def run_once(policy: WildcardPolicy | None, hashing: bool = program.hashes) -> Outcome:
            with ProcessWorld(
                launcher, size, program, backend=backend, seed=drawn, hashing=hashing
            ) as world:
                return world.run(job if policy is None else replace(job, policy=policy))

        outcome, orders = in_all_orders(run_once, lambda outcome: outcome.trace)
        failure = outcome.failure
        if program.hashes and failure and run_once(None, hashing=False).failure is None:
            message = f"{failure.message}\n{about_hash_seeds(outline_live(function))}"
            outcome = replace(outcome, failure=replace(failure, message=message))
    for rank, text in enumerate(outcome.output):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")
    for warning in outcome.trace.warnings:
        print(f"warning: {warning}")
    if seed is None and any(result.drew for result in outcome.results):
        print(note_on_seed(drawn))
    failure = outcome.failure or omission(outcome.results, job.answer_limit)
    if failure is None and rules is Semantics.NCCL:
        failure = nccl_fault(outcome.trace)
    dead = None if killed is None else killed.rank
    finished = Run(
        outcome.results,
        outcome.trace,
        outcome.output,
        failure,
        orders,
        dead,
        drawn,
        len(arguments),
    )
    if not may_fail:
        finished._require_success()
    return finished


def note_on_seed(seed: int) -> str:
    """Return how to repeat a run whose ranks have drawn random numbers without a seed."""
    return f"every rank drew random numbers of its own; seed={seed} repeats them"


def _to_kill(kill: tuple[int, int], size: int, backend: str) -> Kill:
    """Return a request to kill a rank, checked.

    Raises:
        RequestError: it names no rank and step, or a backend that does not survive it.
    """
    if not entry_of(backend).survives:
        raise RequestError(f"where a rank is killed on {entry_of(backend).title}, all others end")
    if not (isinstance(kill, tuple) and len(kill) == 2 and all(type(one) is int for one in kill)):
        raise RequestError(f"kill takes a rank and a step, as in kill=(2, 0), not {kill!r}")
    rank, step = kill
    if not 0 <= rank < size or step < 0:
        raise RequestError(f"kill={kill!r}: the ranks are 0 to {size - 1}, and steps count from 0")
    return Kill(rank, step)


def in_all_orders(
    run_once: Callable[[WildcardPolicy | None], _Ran], record_of: Callable[[_Ran], Trace]
) -> tuple[_Ran, ArrivalOrders | None]:
    """Run a program; where a receive has a choice, run it in other orders as well.

    Args:
        run_once: runs it, by a policy or as usual.
        record_of: returns the record of a run.

    Returns:
        The first run, or that of the first order that fails, with the race named.
    """
    began = time.monotonic()
    first = run_once(None)
    if not record_of(first).choices:
        return first, None
    # a run that takes long is not repeated
    exploration = Exploration(_ORDERS, _EXPLORING - (time.monotonic() - began))
    exploration.add(record_of(first))
    right, wrong = ([], [first]) if first.failure else ([first], [])
    while not (right and wrong) and (policy := exploration.next()) is not None:
        again = run_once(policy)
        exploration.add(record_of(again))
        (wrong if again.failure else right).append(again)
    orders = exploration.orders
    if not wrong:
        return first, orders if orders.known > 1 else None
    (ran, *_), failure = wrong, wrong[0].failure
    assert failure is not None
    race = named_race(record_of(ran), [record_of(one) for one in right], orders)
    named = replace(failure, message=f"{failure.message}{race}")
    return replace(ran, failure=named), orders
