"""Guards against ways around the recording group.

Some of these ways are honest mistakes (``new_group(backend="gloo")``, a collective called through
the dispatcher), others are not.  The guards run in the rank, so they stop a student and not an
attacker; against attackers, the judge relies on what it sees from outside.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.constants import default_pg_timeout

from headcount.core.events import ANY, INIT, WORLD
from headcount.core.source_locations import line_here
from headcount.core.verdict import Diagnosis, counted
from headcount.rank.arguments import GroupIsSetUp, checks, default_group_stays, require_members
from headcount.rank.recorder import Recorder
from headcount.rank.recording_group import RecordingGroup, short_limit
from headcount.rank.transports import FOREVER, Backend

__all__ = [
    "BACKEND",
    "MANAGEMENT",
    "destroy_process_group",
    "is_mapped",
    "join",
    "open_management",
    "other_count",
    "keep_default_group",
    "refuse_management_call",
    "override_dispatcher",
    "remark",
]

#: The name that the recording group is registered by.
BACKEND = "recording"

#: Functions that make and end the default group.
MANAGEMENT = ("init_process_group", "destroy_process_group")

_init_process_group, _destroy_process_group = dist.init_process_group, dist.destroy_process_group
_gloo_init = getattr(getattr(c10d, "ProcessGroupGloo", None), "__init__", None)


class _Guard:
    """The guard of this process, which lets only calls of ours through."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.is_open = False
        #: whether the program is a person's own script, which may do what it likes
        self.script = False
        #: whether calls that make and destroy the default group do nothing
        self.is_made = False
        #: how many default groups a script has made
        self.turn = 0
        #: whether the group that it makes next has a backend for each kind of device
        self.both = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Let calls through, while our own code makes a transport."""
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False

    def refuse(self, what: str) -> None:
        """Report a call and raise, unless our own code makes it."""
        if self.is_open or self.recorder is None or self.script:
            return
        message = f"{what} would bypass the process group of this exercise"
        self.recorder.violated(Diagnosis.FORBIDDEN_CALL, message)
        raise RuntimeError(message)


_guard = _Guard()


def join(
    store: c10d.Store,
    rank: int,
    sizes: Sequence[int],
    recorder: Recorder,
    backend: Backend,
    collectives: bool,
) -> Callable[..., None]:
    """Connect to the other ranks; return a function that makes recording groups of them.

    It takes a number of ranks, and makes a recording group of the first so many ranks the default
    process group of this process, in place of an earlier one; a second number tells several of
    that size apart, where the program itself makes one after another.  All connections are made
    here, since the student's code may run, and a rank be sealed, before the second group is made.

    Args:
        store: the store through which the ranks of this world connect.
        rank: the rank of this process.
        sizes: the sizes of all groups to come; the largest is that of the world.
        recorder: the recorder that the groups report to.
        backend: the backend that carries their messages.
        collectives: whether there may be collectives.  A message goes from rank to rank, however
            many others are connected; without collectives, the largest group carries them all.
    """
    largest = max(sizes)
    backend.prepare(rank, largest)
    transports = {
        size: _private(
            backend,
            c10d.PrefixStore(f"{size}", store),
            rank,
            size,
            range(size),
            size == largest,
            FOREVER,
        )
        for size in (sorted(sizes) if collectives else [largest])
        if rank < size
    }

    def create(options: Any, _: Any) -> RecordingGroup:
        rank, size = options.group_rank, options.group_size
        if options.global_ranks_in_group:
            return _subgroup(backend, options, recorder)
        inner = transports[size if collectives else largest]
        return RecordingGroup(inner, backend, rank, size, range(size), WORLD, recorder)

    device = backend.device(rank).type
    dist.Backend.register_backend(BACKEND, create, extended_api=True, devices=[device])
    _close_private_gloo()
    _reroute_new_groups(backend.name, device)
    _batch_in_the_group()
    _check_what_calls_name(recorder)
    _close_process_group_management()
    _guard.recorder = recorder
    excepthook = sys.excepthook

    def become(size: int, turn: int = 0) -> None:
        before = c10d.GroupMember.WORLD
        if before is not None:
            _destroy_process_group()
        # the keys of an earlier world's subgroups are still in the store
        own = c10d.PrefixStore(f"{size}-{turn}", store)
        _init_process_group(BACKEND, rank=rank, world_size=size, store=own, timeout=FOREVER)
        sys.excepthook = excepthook  # torch puts its own before it, which names the rank
        if before is not None:
            _replace_defaults(before, c10d.GroupMember.WORLD)

    return become


def _replace_defaults(before: object, after: object) -> None:
    """Replace the default group where functions of imported modules have it as a default argument.

    ``torch.distributed.nn.functional`` and others write ``group=group.WORLD``, which is the group
    at the time of the import.
    """
    for held in gc.get_referrers(before):
        if not isinstance(held, (tuple, dict)):
            continue
        for function in gc.get_referrers(held):
            if not isinstance(function, types.FunctionType):
                continue
            if isinstance(held, tuple) and function.__defaults__ is held:
                function.__defaults__ = tuple(after if one is before else one for one in held)
            if isinstance(held, dict) and function.__kwdefaults__ is held:
                function.__kwdefaults__ = {
                    name: after if one is before else one for name, one in held.items()
                }


def _subgroup(backend: Backend, options: Any, recorder: Recorder) -> RecordingGroup:
    """Return a subgroup, which forms when all its members have asked for it.

    Until then they wait, which is reported, so that a deadlock is found here too.
    """
    recorder.require_subgroups()
    rank, size, name = options.group_rank, options.group_size, str(options.group_id)
    members, limit = list(options.global_ranks_in_group), short_limit(options.timeout)
    if _guard.turn > 1:
        # torch's names are the same again in a later default group
        name = f"{name} ({_guard.turn})"
    group = RecordingGroup(None, backend, rank, size, members, name, recorder, limit)
    group_event = recorder.post("new_group", name, peer=ANY, detail=str(members), limit=limit)
    recorder.blocked(group_event, limit)
    patience = options.timeout if limit else FOREVER
    try:
        group._inner = _private(backend, options.store, rank, size, members, False, patience)
    except BaseException:
        recorder.refused(group_event)
        raise
    recorder.resumed()
    recorder.done(group_event)
    if _guard.both:
        group.on_cpu = _beside(group, members, options.store, patience)
    return group


def _beside(
    group: RecordingGroup, members: Sequence[int], store: c10d.Store, limit: timedelta
) -> RecordingGroup:
    """Return a second group of the same ranks, for what torch sends on the CPU.

    With ``cpu:gloo,cuda:nccl`` a group is two: calls on the one and on the other never meet, and
    threads may make them in any order.
    """
    recorder = _guard.recorder
    assert recorder is not None
    before = recorder.backend, recorder.description
    recorder.backend, recorder.description = "gloo", "cpu:gloo"
    name, place, size = f"{group._name}, cpu:gloo", group.rank(), group.size()
    other = RecordingGroup(None, group._backend, place, size, members, name, recorder, group._limit)
    own = c10d.PrefixStore("cpu", store)
    other._inner = _private(group._backend, own, place, size, members, False, limit)
    recorder.backend, recorder.description = before
    return other


def _private(
    backend: Backend,
    store: c10d.Store,
    rank: int,
    size: int,
    members: Sequence[int],
    whole: bool,
    limit: timedelta,
) -> Any:
    """Return a transport's own group; ``whole`` says whether all ranks are in it."""
    with _guard.opened():
        return backend.connect(store, rank, size, members, whole, limit)


def _close_private_gloo() -> None:
    """Refuse gloo groups that the program makes by hand, which would not be recorded."""

    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        _guard.refuse("a gloo group made by hand")
        assert _gloo_init is not None
        _gloo_init(self, *args, **kwargs)

    c10d.ProcessGroupGloo.__init__ = guarded  # type: ignore[method-assign]


def _reroute_new_groups(spoken: str, device: str) -> None:
    """Make ``new_group(backend="gloo")`` return a recording group that is called so.

    Args:
        spoken: the name of the world's backend.
        device: the type of the device that its tensors are on.
    """
    make = c10d._new_process_group_helper

    def recorded(
        group_size: Any, group_rank: Any, ranks: Any, backend: Any, *args: Any, **kwargs: Any
    ) -> Any:
        name = str(backend).lower()
        if name in (spoken, f"{device}:{spoken}", "undefined", BACKEND) or (
            _guard.script and is_mapped(name)
        ):
            backend = dist.Backend(BACKEND)
        else:
            raise ValueError(f"this world speaks {spoken}; backend {name!r} is not to be had in it")
        made = make(group_size, group_rank, ranks, backend, *args, **kwargs)
        group, store = made
        if isinstance(group, RecordingGroup):
            group.made = True
            _call_by_backend(group, store, name if _guard.script else spoken)
        return made

    c10d._new_process_group_helper = recorded  # type: ignore[assignment]
    make_any = c10d._new_group_with_tag
    signature = inspect.signature(make_any)

    @functools.wraps(make_any)
    def told(
        ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if _guard.script and _guard.recorder is not None:
            backend = backend or dist.get_backend()
            # that of NCCL is shorter, and would count as one that the script asks for
            timeout = default_pg_timeout if timeout is None else timeout
            _guard.recorder.backend, _guard.both = _spoken(backend), "," in str(backend)
            given = signature.bind(ranks, timeout, backend, *args, **kwargs).arguments
            _guard.recorder.description = str(given.get("group_desc") or "")
        before = c10d._world.group_count
        try:
            made = make_any(ranks, timeout, backend, *args, **kwargs)
        finally:
            if _guard.recorder is not None:
                _guard.recorder.description = ""  # it is this group's alone
        if _guard.recorder is not None and c10d._world.group_count > before:
            _guard.recorder.groups += 1  # use_local_synchronization does not count
        return made

    c10d._new_group_with_tag = told


def _call_by_backend(group: RecordingGroup, store: c10d.Store, backend: str) -> None:
    """Let torch say of a group what it would in a plain world, where scripts branch on it."""
    own = dist.Backend(backend)
    c10d._world.pg_map[group] = (own, store)
    if _guard.script:
        c10d._world.pg_backend_config[group] = str(c10d.BackendConfig(own))


def _batch_in_the_group() -> None:
    """Make ``batch_isend_irecv`` tell the group which messages are one batch.

    torch does so only for groups of its own classes.
    """
    one_by_one = c10d.batch_isend_irecv

    @functools.wraps(one_by_one)
    def batch_isend_irecv(p2p_op_list: list[Any]) -> Any:
        c10d._check_p2p_op_list(p2p_op_list)
        group: Any = p2p_op_list[0].group or c10d._get_default_group()
        if not isinstance(group, RecordingGroup):  # this rank is no member: torch says so
            return one_by_one(p2p_op_list)
        with group.batched():
            return one_by_one(p2p_op_list)

    for module in (dist, c10d):
        module.batch_isend_irecv = batch_isend_irecv  # type: ignore[attr-defined]


def _check_what_calls_name(recorder: Recorder) -> None:
    """Install the checks of ranks, roots and groups that calls name."""
    for name, check in checks(recorder.outside).items():
        setattr(c10d, name, check)
    make = c10d.new_group

    @functools.wraps(make)
    def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
        if ranks is not None:
            ranks = list(ranks)
            require_members(ranks, dist.get_world_size())
        return make(ranks, *args, **kwargs)

    for module in (dist, c10d):
        module.new_group = new_group  # type: ignore[attr-defined]


def _close_process_group_management() -> None:
    """Refuse calls that make or end the default group, which is used for every case."""
    for module in (dist, c10d):
        module.init_process_group = refuse_management_call("init_process_group")  # type: ignore[attr-defined]
        module.destroy_process_group = destroy_process_group  # type: ignore[attr-defined]


def remark(text: str, file: str = "", line: int = 0) -> None:
    """Report a remark on the program, or on a line of it."""
    if _guard.recorder is not None:
        _guard.recorder.remark(text, file, line)


def current_recorder() -> Recorder | None:
    """Return the recorder of this rank; None outside of a rank."""
    return _guard.recorder


def is_mapped(backend: str) -> bool:
    """Return whether gloo stands in for what a script names as its backend.

    It is one name, or one for each type of device, as in ``cpu:gloo,cuda:nccl``.
    """
    return {part.rpartition(":")[2] for part in backend.split(",")} <= {"gloo", "nccl", "undefined"}


def _spoken(backend: Any) -> str:
    """Return the backend that a script asks for; ``mixed`` if that depends on a tensor's device."""
    names = {part.rpartition(":")[2] for part in str(backend).lower().split(",")}
    return names.pop() if len(names) == 1 and "undefined" not in names else "mixed"


def open_management(become: Callable[..., None], rank: int, size: int) -> None:
    """Let a person's own script make and end the default group itself, as often as it likes.

    Args:
        become: what :func:`join` has returned.
        rank, size: of this process, and the number of ranks.
    """
    _guard.script = True
    if not dist.is_nccl_available():
        # torch logs it with every exception of a call on a group of NCCL
        torch.cuda.nccl.version = lambda: (0, 0, 0)

    @functools.wraps(_init_process_group)
    def init_process_group(
        backend: Any = None,
        init_method: Any = None,
        timeout: Any = None,
        world_size: int = -1,
        rank: int = -1,
        store: Any = None,
        group_name: Any = "",
        pg_options: Any = None,
        device_id: Any = None,
        *_: Any,
        **__: Any,
    ) -> None:
        if c10d.GroupMember.WORLD is not None:
            raise ValueError("trying to initialize the default process group twice!")
        name = str(backend or ("undefined" if device_id is None else "nccl")).lower()
        if not is_mapped(name):
            raise ValueError(f"backend {name!r} is not recorded; gloo and nccl are")
        if store is None and (init_method or "env://") == "env://":
            world_size, rank = _by_environment(world_size, rank)
        if world_size not in (-1, None, size):
            mend = other_count(world_size, size)
            raise ValueError(f"the script asks for {counted(world_size, 'rank')}: {mend}")
        if rank not in (-1, None, mine):
            raise ValueError(f"the script says that it is rank {rank}, and this is rank {mine}")
        _guard.turn += 1
        if _guard.recorder is not None:
            _guard.recorder.backend = _spoken(name)
        become(size, _guard.turn)
        world: Any = c10d.GroupMember.WORLD
        world.made = True
        own = c10d._world.pg_map[world][1]
        _call_by_backend(world, own, name)
        if name != "nccl" or device_id is not None:
            _meet(mine, size, own)
        RecordingGroup.for_device = device_id is not None
        if "," in name:
            world.on_cpu = _beside(world, range(size), own, FOREVER)

    def end_process_group(group: Any = None) -> None:
        if group not in (None, c10d.GroupMember.WORLD):
            destroy_process_group(group)
        elif c10d.GroupMember.WORLD is None:
            raise ValueError("Default process group has not been initialized")
        else:
            _destroy_process_group()

    mine = rank
    closed: dict[Any, Callable[..., None]] = {
        _init_process_group: init_process_group,
        dist.init_process_group: init_process_group,
        _destroy_process_group: end_process_group,
        destroy_process_group: end_process_group,
    }
    # DeviceMesh and others have imported them by name
    for module in [one for name, one in sys.modules.items() if name.startswith("torch.distri")]:
        for name in MANAGEMENT:
            if (ours := closed.get(vars(module).get(name))) is not None:
                setattr(module, name, ours)


def other_count(asked: int, size: int) -> str:
    """Return the mend of a script that asks for another number of ranks than there are."""
    if _guard.turn:
        return (
            f"before, it asked for {size}, and `run` has one number of ranks for all of a script;"
            " let it ask for as many each time, or run its parts one by one"
        )
    return f"{size} run, so run it with --ranks {asked}"


def _by_environment(world_size: Any, rank: Any) -> tuple[Any, Any]:
    """Return what torch takes from the environment for what a call leaves out.

    Raises:
        ValueError: a variable is not set, as torch says it.
    """
    names = ["RANK"] * (rank in (-1, None)) + ["WORLD_SIZE"] * (world_size in (-1, None))
    for name in (*names, "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: environment variable"
                f" {name} expected, but not set"
            )
    found = {"RANK": rank, "WORLD_SIZE": world_size} | {
        name: int(os.environ[name]) for name in names
    }
    return found["WORLD_SIZE"], found["RANK"]


def _meet(rank: int, size: int, store: c10d.Store) -> None:
    """Wait until every rank makes the default group.

    gloo does so to connect them, and NCCL if it gets a ``device_id``; else it connects them at
    their first collective.
    """
    recorder = _guard.recorder
    assert recorder is not None
    recorder.grouped(INIT, list(range(size)))
    op = recorder.post(INIT, INIT)
    recorder.blocked(op)
    try:
        store.set(f"{INIT}/{rank}", "")
        store.wait([f"{INIT}/{each}" for each in range(size)])
    except BaseException:
        recorder.refused(op)
        raise
    recorder.resumed()
    recorder.done(op)


def refuse_management_call(name: str) -> Callable[..., None]:
    """Return the replacement of a function of :data:`MANAGEMENT`, which refuses the call."""

    def call(*args: Any, **kwargs: Any) -> None:
        if not _guard.is_made:
            raise GroupIsSetUp(default_group_stays(name))

    return call


def keep_default_group() -> None:
    """Let calls that make the default group, and destroy it, do nothing from now on.

    It is there all the time, and code that is tested may be written to make it.
    """
    _guard.is_made = True


def destroy_process_group(group: Any = None) -> None:
    """Replace torch's function, for groups that the program itself has made.

    Nothing is torn down, since other ranks may still use the group, but the calling rank can no
    longer use it.

    Raises:
        GroupIsSetUp: the group is the default group.
    """
    if group is None or group is c10d.GroupMember.WORLD:
        if not _guard.is_made:
            raise GroupIsSetUp(default_group_stays("destroy_process_group"))
    elif group != c10d.GroupMember.NON_GROUP_MEMBER:
        group.destroy(line_here()[1])


def override_dispatcher() -> torch.library.Library:
    """Refuse every ``c10d::`` operator on CPU tensors.

    The recording group calls its transport directly, so every call that reaches the dispatcher
    goes around it.  Call this once, in the process that ranks are forked from, and keep the
    library that it returns: the operators are refused as long as it lives.
    """
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]

    def refusing(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            _guard.refuse(f"the operator {name}")
            raise RuntimeError(f"{name} is closed in a recorded world")

        return call

    names = {
        name.partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("c10d::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(names):
            plain = name.removeprefix("c10d::")
            library.impl(plain, refusing(name), "CPU", allow_override=True)  # type: ignore[no-untyped-call]
    return library
