"""Runs a function on every rank of a fresh world, in all orders of arrival that matter."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast, overload

from headcount.core.errors import RequestError, RunFailed, Stopped, is_ours
from headcount.core.packing import about_hash_seeds, live_program
from headcount.core.program import Program
from headcount.core.random_numbers import fresh_seed
from headcount.core.resource_limits import DEFAULTS, valid_sizes
from headcount.core.semantics import Semantics, semantics_named
from headcount.core.source_locations import live_line, with_source
from headcount.core.values import show
from headcount.core.verdict import ArrivalOrders, Failure
from headcount.launch.backends import entry_of
from headcount.launch.launchers import Launcher, default_launcher, discard_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job, Kill, Outcome, RankResult, omission
from headcount.report import failure_report, failure_text, plain, traffic_words
from headcount.trace.nccl_semantics import nccl_fault
from headcount.trace.trace import Trace
from headcount.trace.wildcard_schedules import Exploration, WildcardPolicy, named_race

__all__ = ["Call", "Run", "in_all_orders", "note_on_seed", "run", "stoppable"]

__tracebackhide__ = is_ours

#: Orders of arrival that :func:`run` tries, and seconds for those after the first.
_ORDERS, _EXPLORING = 8, 1.0


class Ran(Protocol):
    """What :func:`in_all_orders` asks of a run: why it failed, if it did."""

    @property
    def failure(self) -> Failure | None: ...


_Ran = TypeVar("_Ran", bound=Ran)


@contextlib.contextmanager
def stoppable() -> Iterator[Launcher]:
    """Give this process's launcher, and end its worlds afterwards, also on an interrupt.

    Raises:
        Stopped: the user has interrupted the work.
    """
    launcher = default_launcher()
    try:
        yield launcher
        launcher.settle()
    except KeyboardInterrupt:
        # a message may have been cut off in the middle, so the launcher cannot be used again
        launcher.close()
        discard_launcher()
        raise Stopped("every rank has been ended") from None


class Run(Sequence[Any]):
    """The value of :func:`run`: the results in rank order, and the record of the run.

    It is shown as what the ranks returned, and what was sent below it.

    Attributes:
        ranks_alone: the results with all that is known of each: arguments, aliases, what has
            changed.
        values: what the ranks returned, as far as they did.
        arguments: how many arguments each rank had.
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
        self.ranks_alone = tuple(results)
        self.values = tuple(result.value for result in results)
        self.arguments = arguments
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
        self.require_success()
        return self.values[index]

    def __len__(self) -> int:
        self.require_success()
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        self.require_success()
        return iter(self.values)

    def error(self) -> RunFailed:
        """Return the exception for a run that has failed."""
        assert self.failure is not None
        return RunFailed(failure_text(self.failure), self.failure)

    @property
    def trace(self) -> Trace:
        """The record of every message, see :class:`headcount.trace.trace.Trace`."""
        return self._trace

    def require_success(self) -> None:
        """Raise if the run has failed.

        Raises:
            RunFailed: it has.
        """
        if self.failure is not None:
            raise self.error()

    def __repr__(self) -> str:
        if self.failure is not None:
            return plain(failure_report(self.failure))
        lines = [
            f"rank {rank}: {'killed' if rank == self.killed else show(v, 160)}"
            for rank, v in enumerate(self.values)
        ]
        # what others still sent to a rank that was killed differs from run to run
        sent = traffic_words(self._trace) if self.killed is None else ""
        return "\n".join([*lines, sent] if sent else lines)


_Result = TypeVar("_Result", bound=Run)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function on every rank of a fresh world; :func:`run` documents its options.

    Attributes:
        program: the function, bound to its arguments.
        name: the function's.
        size: the number of ranks.
        arguments: how many the function is bound to.
    """

    program: Program
    name: str
    size: int
    arguments: int = 0
    seconds: float = DEFAULTS.run
    backend: str = "gloo"
    kill: tuple[int, int] | None = None
    seed: int | None = None
    semantics: str = "gloo"
    check: str = ""

    def on_ranks(self, kind: type[_Result], may_fail: bool = False) -> _Result:
        """Make the call, print what the ranks print, and return the run.

        Args:
            kind: the class of the run that is returned.
            may_fail: whether a failed run is returned, and not raised.

        Raises:
            RunFailed, RequestError: as of :func:`run`.
        """
        (size,) = valid_sizes([self.size])
        rules, program = semantics_named(self.semantics), self.program
        if self.check not in ("", "replicas"):
            raise RequestError(f"check is 'replicas' or nothing, not {self.check!r}")
        killed = None if self.kill is None else _to_kill(self.kill, size, self.backend)
        job = Job(
            self.name,
            ((),) * size,
            allowed=None,
            seconds=self.seconds,
            killed=killed,
            follows=bool(self.arguments),
            replicas=bool(self.check),
        )
        drawn = fresh_seed() if self.seed is None else self.seed
        with stoppable() as launcher:

            def run_once(policy: WildcardPolicy | None, set_orders: bool = True) -> Outcome:
                with ProcessWorld(
                    launcher, size, program, backend=self.backend, seed=drawn, set_orders=set_orders
                ) as world:
                    return world.run(job if policy is None else replace(job, policy=policy))

            outcome, orders = in_all_orders(run_once, lambda outcome: outcome.trace)
            failure = outcome.failure
            sets = outcome.trace.sets_taken
            if sets and failure and run_once(None, set_orders=False).failure is None:
                message = f"{failure.message}\n{about_hash_seeds(sets)}"
                outcome = replace(outcome, failure=replace(failure, message=message))
        for rank, text in enumerate(outcome.output):
            for line in text.splitlines():
                print(f"[rank {rank}] {line}")
        failure = outcome.failure or omission(outcome.results, job.answer_limit)
        notes: list[str] = []
        if outcome.replicas is not None:
            failure, notes = outcome.replicas.judged(failure)
        for warning in (*outcome.trace.warnings, *notes):
            print(f"warning: {warning}")
        if self.seed is None and any(result.drew for result in outcome.results):
            print(note_on_seed(drawn))
        if failure is None and rules is Semantics.NCCL:
            failure = nccl_fault(outcome.trace)
        finished = kind(
            outcome.results,
            outcome.trace,
            outcome.output,
            failure,
            orders,
            None if killed is None else killed.rank,
            drawn,
            self.arguments,
        )
        if not may_fail:
            finished.require_success()
        return finished


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
    check: str = "",
) -> Run:
    """Run a function on every rank of a fresh world of processes.

    The process group is set up: inside, ``dist.get_rank()`` and everything
    else of ``torch.distributed`` works, on gloo unless you say otherwise.
    What ranks print is shown in rank order when all have ended, and warnings after it.
    Displayed, the value is what the ranks returned, and below it what was sent.

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
        backend: what carries the messages: ``gloo``, ``nccl`` or another that
            :func:`headcount.backends` names.
        kill: a rank to kill, and the step at which it dies: 0 as it enters the function, and
            after that one for each operation that it begins, for each that is complete, and for
            each entry that it puts into the store; as it returns, if it makes fewer steps. On
            gloo only.
        seed: repeats the random numbers of an earlier run; fresh ones otherwise. Each rank
            draws its own, as processes do that ``torchrun`` starts.
        semantics: ``nccl`` fails a run that ends well if it could hang or fail on NCCL; see
            ``docs/nccl.md``.
        check: ``replicas`` also fails a run in which replicas of a model drift apart, and names
            step, tensor and rank; see ``docs/run.md``.

    Raises:
        RunFailed: a rank raised, died, hung or broke a rule of communication.
        RequestError: the function cannot be sent to other processes; or the
            backend is not to be had here; or there is no rank to kill; or there are no such
            semantics, or no such check.
    """
    call = Call(
        program=live_program(function, *arguments),
        name=getattr(function, "__name__", "function"),
        size=world_size,
        arguments=len(arguments),
        seconds=seconds,
        backend=backend,
        kill=kill,
        seed=seed,
        semantics=semantics,
        check=check,
    )
    return call.on_ranks(Run, may_fail)


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
    return cast(_Ran, replace(cast(Any, ran), failure=named)), orders
