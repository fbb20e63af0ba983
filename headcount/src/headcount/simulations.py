"""``simulate``: run a function on thousands of ranks, in one process, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from headcount.core.errors import RequestError, is_ours
from headcount.core.packing import live_program
from headcount.core.program import Program
from headcount.core.random_numbers import fresh_seed
from headcount.core.resource_limits import DEFAULTS
from headcount.core.semantics import Semantics, semantics_named
from headcount.core.verdict import ArrivalOrders, amount, duration
from headcount.launch.world import Job, omission
from headcount.runs import Run, in_all_orders, note_on_seed, stoppable
from headcount.simulation.clusters import Cluster, Flat, cluster_from
from headcount.simulation.launch import MEMORY, Simulation
from headcount.simulation.launch import simulate as run_simulated
from headcount.trace.nccl_semantics import nccl_fault
from headcount.trace.trace import Trace
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = [
    "MOST_RANKS",
    "SimulatedCall",
    "SimulatedRun",
    "cluster_of",
    "require_ranks",
    "simulate",
]

__tracebackhide__ = is_ours

#: Largest number of ranks, for which a laptop has enough memory.
MOST_RANKS = 65536

#: Largest number of ranks whose messages are recorded by default.
_RECORDED_RANKS = 16

#: Events of a record; longer ones are discarded.
_EVENTS = 2_000_000


class SimulatedRun(Run):
    """The value of :func:`simulate`: the results in rank order, and the virtual costs.

    Attributes:
        ranks: how many.
        seconds: virtual time at which the last rank returned.
        messages, bytes: that were received.
        output: what the ranks printed, in the order of virtual time, as one text.
        failure: why the run failed, or ``None``.
    """

    def __init__(
        self,
        ranks: int,
        simulation: Simulation,
        limit: int,
        seed: int,
        orders: ArrivalOrders | None = None,
    ) -> None:
        nothing = Trace(((),) * ranks)
        failure = simulation.failure or omission(simulation.results, limit)
        trace = simulation.trace or nothing
        output = (simulation.output,)
        super().__init__(simulation.results, trace, output, failure, orders, seed=seed)
        self.ranks = ranks
        self.seconds = simulation.seconds
        self.messages = simulation.messages
        self.bytes = simulation.bytes
        self._recorded = simulation.trace is not None
        self._overflow = simulation.overflow

    @property
    def trace(self) -> Trace:
        """The record of every message, see :class:`headcount.trace.trace.Trace`.

        Raises:
            RequestError: it was not recorded, or there were too many.
        """
        if self._overflow:
            raise RequestError(
                f"more than {_EVENTS:,} events are not kept: look at fewer ranks, or at less data"
            )
        if not self._recorded:
            raise RequestError(
                f"messages of more than {_RECORDED_RANKS} ranks are recorded only if you say so:"
                " simulate(…, record=True)"
            )
        return super().trace

    def __repr__(self) -> str:
        if self.failure is not None:
            return super().__repr__()
        return (
            f"{self.ranks:,} simulated ranks: {duration(self.seconds)},"
            f" {self.messages:,} messages, {amount(self.bytes)}"
        )


_Result = TypeVar("_Result", bound=SimulatedRun)


@dataclass(frozen=True, kw_only=True)
class SimulatedCall:
    """A call of a function on every simulated rank; :func:`simulate` documents its options.

    Attributes:
        program: the function, bound to its arguments.
        name: the function's.
        ranks: the number of ranks.
    """

    program: Program
    name: str
    ranks: int
    cluster: str | Cluster | None = None
    alpha: float | None = None
    beta: float | None = None
    eager: int = -1
    algorithms: Mapping[str, str] = field(default_factory=dict)
    record: bool | None = None
    seconds: float = DEFAULTS.simulation
    seed: int | None = None
    semantics: str = "gloo"

    def on_ranks(self, kind: type[_Result], may_fail: bool = False) -> _Result:
        """Make the call, print what the ranks print, and return the run.

        Args:
            kind: the class of the run that is returned.
            may_fail: whether a failed run is returned, and not raised.

        Raises:
            RunFailed, RequestError: as of :func:`simulate`.
        """
        ranks = self.ranks
        require_ranks(ranks)
        rules = semantics_named(self.semantics)
        described = cluster_of(self.cluster, self.alpha, self.beta)
        job = Job(self.name, ((),) * ranks, allowed=None, seconds=self.seconds)
        recorded = ranks <= _RECORDED_RANKS if self.record is None else self.record
        drawn = fresh_seed() if self.seed is None else self.seed
        nothing = Trace(((),) * ranks)
        with stoppable() as launcher:

            def run_once(policy: WildcardPolicy | None) -> Simulation:
                return run_simulated(
                    launcher,
                    self.program,
                    job,
                    described,
                    eager=self.eager,
                    recorded=_EVENTS if recorded else 0,
                    memory=MEMORY,
                    algorithms=self.algorithms,
                    policy=policy or WildcardPolicy(),
                    seed=drawn,
                )

            simulation, orders = in_all_orders(run_once, lambda one: one.calls or nothing)
        if rules is Semantics.NCCL and simulation.failure is None:
            if simulation.calls is None:
                raise RequestError(
                    "NCCL's rules are applied to a record, and there is none of this run: ask for"
                    " one with record=True, or for fewer ranks or steps"
                )
            simulation = replace(simulation, failure=nccl_fault(simulation.calls))
        print(simulation.output, end="")
        for warning in simulation.warnings:
            print(f"warning: {warning}")
        if self.seed is None and simulation.drew:
            print(note_on_seed(drawn))
        finished = kind(ranks, simulation, job.answer_limit, drawn, orders)
        if not may_fail:
            finished.require_success()
        return finished


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

    It is the same function that :func:`headcount.run` takes; only the time is that of a
    model.  A message of S bytes takes α + S·β; a rank has one port to send and one to
    receive; computing takes no time, but ``time.sleep`` does.

    Args:
        function: called as ``function(*arguments)`` on every rank.
        ranks: how many.
        arguments: the same for every rank.
        cluster: the name of a preset or the path of a ``.json`` file, see
            ``docs/simulation.md``, or a description; one α and β for all pairs if not given.
        alpha: seconds that a message of no bytes takes (1e-6).
        beta: seconds that each byte adds (1e-10: 10 GB/s).
        eager: bytes up to which a send does not wait for its receive; −1 for none.
        algorithms: of built-in collectives, such as ``{"all_reduce": "ring"}``.
        record: whether to record every message, for ``replay``, ``timeline`` and ``trace``;
            by default they are recorded up to 16 ranks.
        seconds: of the wall clock after which the run has failed.
        may_fail: return a failed run instead of raising.
        seed: repeats the random numbers of an earlier run; fresh ones otherwise. With the same
            seed, a simulated rank draws what a real one does.
        semantics: ``nccl`` fails a run that ends well if it could hang or fail on NCCL, which
            takes a record; see ``docs/nccl.md``.

    Raises:
        RunFailed: a rank raised, or ranks wait for each other.
        RequestError: the numbers, the cluster or the algorithms make no sense; or the semantics
            do not, or need a record that is not there.
    """
    call = SimulatedCall(
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


def require_ranks(ranks: Any) -> None:
    """Make sure that this number of ranks can be simulated.

    Raises:
        RequestError: it cannot.
    """
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 1 <= ranks <= MOST_RANKS:
        raise RequestError(f"a simulation has 1 to {MOST_RANKS:,} ranks, not {ranks!r}")


def cluster_of(
    cluster: str | Cluster | None, alpha: float | None = None, beta: float | None = None
) -> Cluster:
    """Return the cluster that was asked for by name or description, or by α and β.

    Raises:
        RequestError: it was asked for in both ways, or there is no such cluster.
    """
    if cluster is None:
        flat = Flat()
        return Flat(
            flat.alpha if alpha is None else alpha,
            flat.beta if beta is None else beta,
        )
    if alpha is not None or beta is not None:
        raise RequestError("a cluster has its own alpha and beta; give it, or them")
    return cluster_from(cluster) if isinstance(cluster, str) else cluster
