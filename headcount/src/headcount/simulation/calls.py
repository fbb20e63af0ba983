"""``torch.distributed``, the clock and the random numbers, as simulated ranks see them.

The default group is a :class:`~headcount.simulation.group.SimulatedGroup`, and torch's own
functions work on it; the commonest calls take a shorter way.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel

from headcount.core.events import ANY, WORLD
from headcount.core.source_locations import line_here
from headcount.core.verdict import Site
from headcount.rank.arguments import checks, require_members
from headcount.rank.guard import MANAGEMENT, destroy_process_group, refuse_management_call
from headcount.rank.requests import collect_all
from headcount.simulation.builtin import BuiltinCall, Builtins, Disagreement, Work
from headcount.simulation.group import SimulatedGroup
from headcount.simulation.network import PER_SECOND, ticks_of
from headcount.simulation.recording import CallRecord, WatchedGroup, wait_all
from headcount.simulation.scheduler import SimulatedRequest
from headcount.simulation.world import SimulatedWorld

__all__ = ["RankGenerators", "installed", "clock_and_generators", "shortcuts"]


# Shortcuts from ``send``, ``recv``, ``isend``, ``irecv`` and their batches to the world. ----
#
# A simulation consists of little else than these calls, and torch's own functions take longer for
# them than everything that the world does.  So a plain tensor for the default group goes straight
# to the world, and every other call takes torch's way: the rules of a real world, and their error
# messages, are in one place only.

#: The dtypes that gloo sends; complex numbers take torch's way, as views of real ones.
_PLAIN = frozenset(
    {
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    }
)


#: The functions that have a shortcut.
_SHORTENED = ("send", "recv", "isend", "irecv", "batch_isend_irecv")


def shortcuts(
    world: SimulatedWorld, originals: dict[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return functions with the effect of torch's, by name, that go straight to the world.

    Args:
        world: the simulated world.
        originals: torch's own functions of :data:`_SHORTENED`.
    """
    size, everyone = world.size, c10d._get_default_group()
    plain, dtypes, strided = torch.Tensor, _PLAIN, torch.strided

    def is_plain(tensor: Any, peer: Any, group: Any, tag: Any, group_peer: Any) -> bool:
        """Return whether torch and gloo would do no more with a message than carry it."""
        return (
            type(tensor) is plain
            and type(peer) is int
            and 0 <= peer < size
            and peer != world.current.number
            and group is None
            and type(tag) is int
            and tag == 0
            and group_peer is None
            and tensor.dtype in dtypes
            and tensor.is_cpu
            and tensor.layout is strided
            and tensor.is_contiguous()
            and not world.closed
            and not world.threads
        )

    def isend(
        tensor: torch.Tensor,
        dst: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_dst: int | None = None,
    ) -> Any:
        if not is_plain(tensor, dst, group, tag, group_dst):
            return originals["isend"](tensor, dst, group=group, tag=tag, group_dst=group_dst)
        return opened(world.post_send(tensor, dst, world.current.number))  # type: ignore[arg-type]

    def irecv(
        tensor: torch.Tensor,
        src: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_src: int | None = None,
    ) -> Any:
        if not is_plain(tensor, src, group, tag, group_src):
            return originals["irecv"](tensor, src, group=group, tag=tag, group_src=group_src)
        return opened(world.post_receive(tensor, src, src))  # type: ignore[arg-type]

    def send(
        tensor: torch.Tensor,
        dst: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_dst: int | None = None,
    ) -> None:
        if not is_plain(tensor, dst, group, tag, group_dst):
            originals["send"](tensor, dst, group=group, tag=tag, group_dst=group_dst)
        else:
            opened(world.post_send(tensor, dst, world.current.number)).wait()  # type: ignore[arg-type]

    def recv(
        tensor: torch.Tensor,
        src: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_src: int | None = None,
    ) -> Any:
        if not is_plain(tensor, src, group, tag, group_src):
            return originals["recv"](tensor, src, group=group, tag=tag, group_src=group_src)
        if not world.take_sent(tensor, src):  # type: ignore[arg-type]
            opened(world.post_receive(tensor, src, src)).wait()  # type: ignore[arg-type]
        return src

    def batch_isend_irecv(p2p_op_list: list[dist.P2POp]) -> list[Any]:
        c10d._check_p2p_op_list(p2p_op_list)
        if p2p_op_list[0].group is not everyone:
            return originals["batch_isend_irecv"](p2p_op_list)  # type: ignore[no-any-return]
        works = []
        for one in p2p_op_list:
            works.append(one.op(one.tensor, one.peer, None, one.tag))
        return [work for work in works if work is not None]

    shortened = (send, recv, isend, irecv, batch_isend_irecv)
    ours = {call.__code__ for call in shortened}

    def opened(request: SimulatedRequest) -> SimulatedRequest:
        """Note a request that is open, and which line has posted it."""
        world.open[request] = None
        frame = sys._getframe(1)
        while frame.f_code in ours and frame.f_back is not None:
            frame = frame.f_back
        request.place = frame.f_code, frame.f_lasti
        return request

    return dict(zip(_SHORTENED, shortened, strict=True))


# The clock and the random numbers. ------------------------------------------------
#
# A real rank is a process, with a clock and random generators of its own.  A simulated rank
# reads the virtual clock, so that ``time.sleep`` stands for computing and measured times are the
# model's; and every rank draws the numbers that the process of a real rank would draw.

#: How torch marks an operation that draws from a generator.
_DRAWS = torch.Tag.nondeterministic_seeded

#: Functions that draw from, set or read the generator without being marked, or which torch looks up
#: only when they are first called.
_ALSO = (
    *("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "random_"),
    *("scaled_dot_product_attention", "feature_alpha_dropout", "feature_dropout"),
    *("binomial", "rrelu", "rrelu_", "lstm", "gru", "rnn_tanh", "rnn_relu"),
)

_PER_NANOSECOND = PER_SECOND // 10**9


@contextlib.contextmanager
def clock_and_generators(world: SimulatedWorld, seeds: Sequence[int]) -> Iterator[RankGenerators]:
    """Give each rank the virtual clock, and generators of its own.

    Args:
        world: the simulated ranks.
        seeds: by rank, the seed of its random numbers.
    """
    generators = RankGenerators(world, seeds)
    starters: list[tuple[Any, str]] = [
        (threading.Thread, "start"),
        (_thread, "start_new_thread"),
    ]
    with _replaced(
        *((time, name, call) for name, call in _clocks(world).items()),
        *((place, name, world.noting_threads(getattr(place, name))) for place, name in starters),
        *(
            (torch.autograd, name, _in_own_thread(world, getattr(torch.autograd, name)))
            for name in ("backward", "grad")
        ),
        *((owner, name, generators.with_state(getattr(owner, name))) for owner, name in _drawing()),
        *((random, name, _on_own(generators.of_python, name)) for name in _of_python()),
        *((np.random, name, _on_own(generators.of_numpy, name)) for name in _of_numpy()),
    ):
        yield generators


def _in_own_thread(world: SimulatedWorld, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of autograd, run for each rank in a thread of the rank's own.

    Autograd's engine keeps a queue for each thread.  Where ranks that share one wait for each
    other inside ``backward``, the engine runs one rank's tasks on another's stack and hangs.
    """

    @functools.wraps(call)
    def in_own_thread(*arguments: Any, **named: Any) -> Any:
        return world.in_own_thread(lambda: call(*arguments, **named))

    return in_own_thread


@contextlib.contextmanager
def _replaced(*replacements: tuple[Any, str, Callable[..., Any]]) -> Iterator[None]:
    """Give attributes other values, inside the context: of each its owner, name and value."""
    before = [
        (place, name, name in vars(place), getattr(place, name)) for place, name, _ in replacements
    ]
    try:
        for place, name, call in replacements:
            setattr(place, name, call)
        yield
    finally:
        for place, name, own, value in before:
            # a method that was inherited must be inherited again
            if own:
                setattr(place, name, value)
            elif name in vars(place):
                delattr(place, name)


def _clocks(world: SimulatedWorld) -> dict[str, Callable[..., Any]]:
    """Return replacements for the functions of :mod:`time`, by name, in virtual time."""
    begun, begun_ns = time.time(), time.time_ns()

    def seconds() -> float:
        return world.now / PER_SECOND

    def nanoseconds() -> int:
        return world.now // _PER_NANOSECOND

    def sleep(seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        world.sleep(ticks_of(float(seconds)))

    def another(clock: Callable[[], Any]) -> Callable[[], Any]:
        # as Python's own, each clock is a function of its own, by which it can be told from others
        return lambda: clock()

    clocks = ("perf_counter", "monotonic", "process_time", "thread_time")
    return {
        **{name: another(seconds) for name in clocks},
        **{f"{name}_ns": another(nanoseconds) for name in clocks},
        "time": lambda: begun + seconds(),
        "time_ns": lambda: begun_ns + nanoseconds(),
        "sleep": sleep,
    }


@functools.cache
def _drawing() -> list[tuple[Any, str]]:
    """Return the owner and name of each function and method that uses torch's generator."""
    found = set(_ALSO)
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if name.startswith("__") or not hasattr(packet, "overloads"):
            continue
        if any(_DRAWS in getattr(packet, one).tags for one in packet.overloads()):
            found.add(name)
    return [
        (owner, name)
        for owner in (torch, torch._VF, torch.random, torch.Tensor, torch.nn.functional)
        for name in sorted(found)
        if callable(getattr(owner, name, None))
    ]


@functools.cache
def _of_python() -> list[str]:
    return _methods(random, random._inst)


@functools.cache
def _of_numpy() -> list[str]:
    return _methods(np.random, np.random.mtrand._rand)


def _methods(module: Any, shared: object) -> list[str]:
    """Return the names in a module that are methods of the one generator that all code shares."""
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__self__", None) is shared and not name.startswith("_")
    ]


def _on_own(own: Callable[[], Any], name: str) -> Callable[..., Any]:
    """Return a function that calls a method of the current rank's own generator."""

    def draw(*arguments: Any, **named: Any) -> Any:
        return getattr(own(), name)(*arguments, **named)

    return draw


class RankGenerators:
    """The random generators of simulated ranks, made when a rank first draws.

    Torch has one generator for the CPU, whose state is swapped when another rank draws.

    Attributes:
        used: whether a rank has drawn torch's numbers without having seeded torch itself.
    """

    def __init__(self, world: SimulatedWorld, seeds: Sequence[int]) -> None:
        self._world = world
        self._seeds = seeds
        self._get, self._set = torch.get_rng_state, torch.set_rng_state
        self._states: dict[int, torch.Tensor] = {}
        self._owner: int | None = None
        self._python: dict[int, random.Random] = {}
        self._numpy: dict[int, np.random.RandomState] = {}
        self.used = False

    def _own_seed(self) -> int:
        return self._seeds[self._world.running().number]

    def with_state(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of torch's that draws, so that it uses the state of its rank."""

        def draw(*arguments: Any, **named: Any) -> Any:
            me = self._world.running().number
            if me != self._owner:
                if self._owner is not None:
                    self._states[self._owner] = self._get()
                if me in self._states:
                    self._set(self._states[me])
                else:
                    torch.default_generator.manual_seed(self._own_seed())
                self._owner = me
            value = call(*arguments, **named)
            if not self.used:
                self.used = self._has_drawn()
            return value

        return draw

    def _has_drawn(self) -> bool:
        generator, own = torch.default_generator, self._own_seed()
        if generator.initial_seed() != own:
            return False
        begun = torch.Generator().manual_seed(own).get_state()
        return not torch.equal(generator.get_state(), begun)

    def of_python(self) -> random.Random:
        """Return the generator of :mod:`random` for the current rank."""
        me = self._world.running().number
        if me not in self._python:
            self._python[me] = random.Random(self._own_seed())
        return self._python[me]

    def of_numpy(self) -> np.random.RandomState:
        """Return the generator of ``numpy.random`` for the current rank."""
        me = self._world.running().number
        if me not in self._numpy:
            self._numpy[me] = np.random.RandomState(self._own_seed() % 2**32)
        return self._numpy[me]


# All of torch.distributed. --------------------------------------------------------

_BACKEND = "simulated"


@contextlib.contextmanager
def installed(
    world: SimulatedWorld, builtins: Builtins | None = None, record: CallRecord | None = None
) -> Iterator[None]:
    """Make ``torch.distributed`` work on the ranks of a simulated world, inside the context.

    Args:
        world: the simulated world.
        builtins: its built-in collectives.
        record: takes what the recorders of the ranks report; without one, nothing is reported.
    """
    builtins = builtins or Builtins()
    group = _group(world, range(world.size), WORLD, builtins, record)
    if isinstance(group, WatchedGroup):
        for rank in range(world.size):
            group.enter(rank, range(world.size))
    if not hasattr(dist.Backend, _BACKEND.upper()):
        dist.Backend.register_backend(_BACKEND, _create, extended_api=True, devices=["cpu"])
    _create.group = group  # type: ignore[attr-defined]
    dist.init_process_group(_BACKEND, rank=0, world_size=world.size, store=HashStore())
    group.made = True
    group_of_torch = c10d._get_default_group()
    c10d._world.pg_map[group_of_torch] = (dist.Backend("gloo"), HashStore())
    before = {name: getattr(c10d, name) for name in _SHORTENED}
    kept = {name: getattr(c10d, name) for name in ("new_group", *MANAGEMENT)}

    def outside(function: str) -> None:
        number = world.running().number
        if record is None:
            builtins.outside(number, function)
        else:
            record.recorders[number].outside(function)

    named = checks(outside)
    originals = {name: getattr(c10d, name) for name in named}
    try:
        for name, check in named.items():
            setattr(c10d, name, check)
        if world.recorder is None and record is None and world.eager < 0:
            for name, call in shortcuts(world, before).items():
                _replace(name, call)
        if record is not None:
            batched = record.batching(before["batch_isend_irecv"])
            _replace("batch_isend_irecv", batched)
        _replace("new_group", _group_maker(world, builtins, record))
        _replace("init_process_group", refuse_management_call("init_process_group"))
        _replace("destroy_process_group", destroy_process_group)
        with _replaced(
            (DistributedDataParallel, "__init__", _no_ddp),
            (torch.futures, "wait_all", wait_all),
            (torch.futures, "collect_all", collect_all),
        ):
            yield
    finally:
        for name, check in originals.items():
            setattr(c10d, name, check)
        for name, call in (before | kept).items():
            _replace(name, call)
        dist.destroy_process_group()


def _create(*_: Any) -> SimulatedGroup:
    return _create.group  # type: ignore[attr-defined,no-any-return]


def _replace(name: str, call: Callable[..., Any]) -> None:
    for module in (dist, c10d):
        setattr(module, name, call)


def _no_ddp(*_: Any, **__: Any) -> None:
    raise RuntimeError(
        "DistributedDataParallel waits for its collectives in C++, where simulated ranks, which"
        " share one thread, cannot let each other run; run it on processes, with run(f, n)"
    )


def _group(
    world: SimulatedWorld,
    members: Sequence[int],
    name: str,
    builtins: Builtins,
    record: CallRecord | None,
) -> SimulatedGroup:
    if record is None:
        return SimulatedGroup(world, members, name, builtins)
    return WatchedGroup(world, members, name, builtins, record)


def _group_maker(
    world: SimulatedWorld, builtins: Builtins, record: CallRecord | None
) -> Callable[..., Any]:
    """Return ``new_group`` for simulated ranks: the k-th call of each makes the same group.

    With ``use_local_synchronization``, which only the members call, it is the k-th call for the
    same members.  It is a collective of the members, which takes no time.
    """
    groups: dict[tuple[Any, int], SimulatedGroup] = {}
    made: dict[tuple[Any, int], list[Work]] = defaultdict(list)
    calls: dict[tuple[Any, int], int] = defaultdict(int)

    def new_group(
        ranks: Any = None, *_: Any, use_local_synchronization: bool = False, **__: Any
    ) -> Any:
        me = world.running().number
        members = list(range(world.size)) if ranks is None else list(ranks)
        require_members(members, world.size)
        members.sort()
        callers = tuple(members) if use_local_synchronization else WORLD
        if use_local_synchronization and me not in members:
            return None  # as torch does
        key = callers, calls[callers, me]
        calls[callers, me] += 1
        if me not in members:
            return dist.GroupMember.NON_GROUP_MEMBER
        if key not in groups:
            group = _group(world, members, f"group {len(groups)}", builtins, record)
            group.made = True
            groups[key] = group
            c10d._world.pg_map[group] = (dist.Backend("gloo"), HashStore())
            c10d._world.pg_names[group] = group.getGroupName()  # type: ignore[assignment]
            c10d._world.pg_group_ranks[group] = {m: i for i, m in enumerate(members)}
            c10d._world.pg_backend_config[group] = "cpu:gloo"
        group = groups[key]
        name = group.getGroupName()
        with contextlib.ExitStack() as reported:
            if isinstance(group, WatchedGroup):
                reported.enter_context(group.forming(me, members))
            site = Site(*line_here()[:2])
            call = BuiltinCall(me, "new_group", name, ANY, str(members), (), site)
            first = made[key][0].call if made[key] else call
            if first.detail != call.detail:  # it may not even be a member of what the first makes
                error = Disagreement(*(replace(one, group=WORLD) for one in (first, call)))
                builtins.disagreements.setdefault(me, error)
                raise error
            builtins.join(call)
            work = Work(world, world.running(), call, [])
            made[key].append(work)
            if len(made[key]) == len(members):
                for one in made[key]:
                    world.complete(one)
            work.wait()
        if world.recorder is not None:
            world.recorder.grouped(name, members)
        return group

    return new_group
