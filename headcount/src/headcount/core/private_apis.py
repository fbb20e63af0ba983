"""What headcount relies on that torch, Python and others do not promise to keep.

:data:`PRIVATE_APIS` is the one table of it, and :func:`changes` compares a table with what is
installed.  A test compares the table with the source, so that
no use is missing and no entry is left over.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = [
    "PRIVATE_APIS",
    "TESTED",
    "Change",
    "PrivateApi",
    "changes",
    "checked",
    "installed_version",
    "tested_versions",
]

#: The first and the last version of each that headcount is tested with.
TESTED = {"torch": ((2, 11), (2, 15)), "CPython": ((3, 10), (3, 13))}

#: Packages that own the names that begin with theirs; all others are CPython's.
_PACKAGES = ("IPython", "cloudpickle", "ipykernel", "numpy", "torch")


@dataclass(frozen=True)
class PrivateApi:
    """A private or undocumented name that is relied on.

    Attributes:
        name: module, class and attribute, joined by dots.
        needed_to: what it is needed for, as a phrase after "to".
        modules: the modules that use it, by their paths in the package.
        parameters: for a function, its first parameters.
        variables: for a function, local variables that are read from its frames.
        mentions: for a function, the name of ours that it asks for.
        since, until: the first and the last version of its owner that has it, if not all have.
        where: a public function that returns whether this build has it.
        behaves: returns whether it does what is relied on.
        package: the package whose modules use it.
    """

    name: str
    needed_to: str
    modules: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    mentions: str = ""
    since: tuple[int, int] | None = None
    until: tuple[int, int] | None = None
    where: str = ""
    behaves: Callable[[Any], bool] | None = None
    package: str = "headcount"

    @property
    def paths(self) -> list[str]:
        """The modules that use it, with the package."""
        return [f"{self.package}/{module}" for module in self.modules]

    @property
    def owner(self) -> str:
        """Who may change it: torch, CPython, IPython, …"""
        first = self.name.partition(".")[0]
        return first if first in _PACKAGES else "CPython"


@dataclass(frozen=True)
class Change:
    """An entry of the table that is not as it is expected to be.

    Attributes:
        api: the entry.
        fault: what has changed, as the end of a sentence that begins with its name.
    """

    api: PrivateApi
    fault: str

    def __str__(self) -> str:
        owner = self.api.owner
        return (
            f"{self.api.name} {self.fault} in {owner} {installed_version(owner)}; it is needed to"
            f" {self.api.needed_to} ({', '.join(self.api.paths)}). {_mend(owner)}"
        )


# Behaviour, where it is cheap to look. ---------------------------------------------------


def _counts_writes(_: Any) -> bool:
    import torch

    tensor = torch.zeros(1)
    before = tensor._version
    return tensor.add_(1)._version == before + 1


def _tells_views(_: Any) -> bool:
    import torch

    tensor = torch.zeros(2)
    return tensor[:1]._is_view() and not tensor._is_view()


def _lists_collectives(names: Any) -> bool:
    return any(name.startswith("c10d::allreduce_") for name in names())


def _asks_subclasses(group: Any) -> bool:
    """Return whether torch's C++ asks a Python subclass for its names."""

    class Named(group):  # type: ignore[misc]
        getBackendName = getGroupName = getGroupDesc = lambda self: "ours"  # noqa: N815

    named = Named(0, 1)
    return bool(named.name() == named.group_name == named.group_desc == "ours")


def _holds_running_threads(active: Any) -> bool:
    import threading

    return active.get(threading.get_ident()) is threading.current_thread()


def _shows_this_frame(frames: Any) -> bool:
    import threading

    return frames().get(threading.get_ident()) is sys._getframe()


def _shows_its_caller(getframe: Any) -> bool:
    return bool(getframe(0).f_code is _shows_its_caller.__code__)


# The table. ------------------------------------------------------------------------------

_C10D = "torch.distributed.distributed_c10d"
_OPTIONS = "torch._C._distributed_c10d._DistributedBackendOptions"
_GROUPS = ("rank/torch_group.py",)
_LINES = "name the line of a program that has handed a call to a pool of threads"
_WAITS = "know which threads of a rank can go on, and so name a deadlock"


def _each(
    names: str, needed_to: str, modules: tuple[str, ...], where: str = ""
) -> list[PrivateApi]:
    """Return the entries of names that are needed for the same, as in ``module.{one,other}``."""
    owner, _, inner = names[:-1].partition("{")
    return [PrivateApi(owner + one, needed_to, modules, where=where) for one in inner.split(",")]


PRIVATE_APIS: tuple[PrivateApi, ...] = (
    # a person's own script
    PrivateApi(
        "torch.nn.modules._functions.SyncBatchNorm",
        "normalize batches of all ranks on the CPU",
        ("rank/sync_batch_norm.py",),
    ),
    PrivateApi(
        "torch.nn.parallel.DistributedDataParallel._passing_sync_batchnorm_handle",
        "take SyncBatchNorm on the CPU",
        ("rank/sync_batch_norm.py",),
    ),
    *_each(
        "{atexit._clear,atexit._run_exitfuncs,multiprocessing.util._exit_function,"
        "threading._shutdown,weakref.finalize._registered_with_atexit,weakref.finalize._registry}",
        "end a script as Python ends it",
        ("rank/script.py",),
    ),
    # a job that hangs
    PrivateApi(
        "torch._C._distributed_c10d._dump_fr_trace_json",
        "prove that torch's recorder lies in memory where attach reads it (gloo's)",
        ("script/attach/recorder_memory.py",),
    ),
    PrivateApi(
        "torch.multiprocessing.start_processes",
        "tell the ranks of mp.spawn from their stacks",
        ("script/attach/processes.py",),
        mentions="_wrap",
    ),
    PrivateApi(
        "torch.distributed.fsdp._fully_shard._fsdp_collectives.foreach_all_gather",
        "name the parameters that FSDP gathers",
        ("rank/replicas.py",),
        parameters=("fsdp_params",),
    ),
    PrivateApi(
        "torch.distributed.fsdp._fully_shard._fsdp_param.FSDPParam._param_fqn",
        "name the parameters that FSDP gathers",
        ("rank/replicas.py",),
    ),
    # torch: process groups
    PrivateApi(
        f"{_C10D}._canonicalize_group_rank",
        "name a rank that a call gives and a group does not have",
        ("rank/arguments.py",),
        parameters=("group", "global_rank", "group_rank", "return_global"),
    ),
    PrivateApi(
        f"{_C10D}._check_not_self_rank",
        "name a message of a rank to itself",
        ("rank/arguments.py",),
        parameters=("group", "rank", "rank_type"),
    ),
    PrivateApi(
        f"{_C10D}._warn_not_in_group",
        "name a call on a group that the rank is not in",
        ("rank/arguments.py",),
        parameters=("op_name",),
    ),
    PrivateApi(
        f"{_C10D}._new_group_with_tag",
        "tell a group that asks for gloo from one that takes the default group's backend",
        ("rank/guard.py",),
        parameters=("ranks", "timeout", "backend"),
    ),
    PrivateApi(
        f"{_C10D}._new_process_group_helper",
        "make the groups of new_group recording groups, and know for whom a new group waits",
        ("rank/guard.py", "script/attach/waits.py"),
        parameters=("group_size", "group_rank", "global_ranks_in_group", "backend", "store"),
    ),
    PrivateApi(
        f"{_C10D}._check_p2p_op_list",
        "check the operations of batch_isend_irecv",
        ("rank/guard.py", "simulation/calls.py"),
        parameters=("p2p_op_list",),
    ),
    PrivateApi(
        f"{_C10D}._get_default_group",
        "find the default group",
        ("rank/guard.py", "simulation/calls.py"),
    ),
    PrivateApi(
        f"{_C10D}._world.pg_map",
        "tell a program which backend its group has",
        ("rank/guard.py", "simulation/calls.py"),
    ),
    PrivateApi(
        f"{_C10D}._world.group_count",
        "count the calls of new_group that all ranks have to make",
        ("rank/guard.py",),
    ),
    PrivateApi(
        f"{_C10D}._world.pg_group_ranks",
        "translate ranks between groups",
        ("rank/arguments.py", "simulation/calls.py"),
    ),
    PrivateApi(
        f"{_C10D}._world.pg_names",
        "let torch find the groups of simulated ranks",
        ("simulation/calls.py",),
    ),
    PrivateApi(
        f"{_C10D}._world.pg_backend_config",
        "tell a program which backend its group has for a kind of device",
        ("rank/guard.py", "simulation/calls.py"),
    ),
    PrivateApi(
        f"{_C10D}.batch_isend_irecv",
        "get the messages of a batch one by one",
        _GROUPS,
        mentions="supports_coalescing",
    ),
    PrivateApi(
        "torch.distributed.Backend.register_backend",
        "register the recording group as a backend",
        ("rank/guard.py", "simulation/calls.py"),
        parameters=("name", "func", "extended_api", "devices"),
    ),
    *_each(
        _OPTIONS + ".{global_ranks_in_group,group_id,group_rank,group_size,store,timeout}",
        "make a recording group",
        ("rank/guard.py",),
    ),
    PrivateApi(
        "torch.distributed.ProcessGroup",
        "give torch the names of a recording group",
        _GROUPS,
        behaves=_asks_subclasses,
    ),
    PrivateApi(
        "torch.distributed.ProcessGroup._get_backend",
        "be asked for a group's backend by torch",
        _GROUPS,
    ),
    PrivateApi(
        "torch.distributed.ProcessGroup._device_types",
        "say where a group's tensors are",
        _GROUPS,
    ),
    *_each(
        "torch.distributed.ProcessGroup.{_allgather_base,_reduce_scatter_base}",
        "record all_gather_single and reduce_scatter_single, by their older names",
        ("rank/arguments.py", "simulation/group.py"),
    ),
    *_each(
        "torch.distributed.ProcessGroup.{_start_coalescing,_end_coalescing}",
        "coalesce collectives, or refuse it",
        ("rank/recording_group.py", "simulation/group.py"),
    ),
    *_each(
        "torch.distributed.ProcessGroupNCCL.{_start_coalescing,_end_coalescing}",
        "batch messages on NCCL",
        ("rank/transports/nccl.py",),
        where="torch.distributed.is_nccl_available",
    ),
    PrivateApi(
        "torch.distributed.ProcessGroupNCCL.Options._timeout",
        "let NCCL wait until a deadlock is named",
        ("rank/transports/nccl.py",),
        where="torch.distributed.is_nccl_available",
    ),
    *_each(
        _C10D + ".ProcessGroupGloo.{_Options,_Options._devices,_Options._timeout}",
        "let all groups of a rank listen on one device",
        ("rank/transports/gloo.py",),
    ),
    PrivateApi(
        "torch.distributed.Work._source_rank",
        "tell recv where a wildcard's message came from",
        ("rank/requests.py", "simulation/group.py", "simulation/scheduler.py"),
    ),
    PrivateApi(
        "torch._C._dispatch_get_all_op_names",
        "refuse the dispatcher's c10d operators",
        ("rank/guard.py",),
        behaves=_lists_collectives,
    ),
    PrivateApi(
        "torch._C._dispatch_has_kernel_for_dispatch_key",
        "refuse the dispatcher's c10d operators",
        ("rank/guard.py",),
    ),
    *_each(
        "torch._C.{_len_torch_dispatch_stack,_pop_torch_dispatch_stack,"
        "_push_on_torch_dispatch_stack}",
        "let each simulated rank keep its dispatch modes",
        ("simulation/scheduler.py",),
    ),
    PrivateApi(
        "torch._C._collect_all",
        "give a batch of messages one future",
        ("rank/recording_group.py",),
    ),
    PrivateApi(
        "torch.autograd.graph._engine_run_backward",
        "know that DDP's reducer asks for a future, and let it be seen to wait",
        ("rank/requests.py",),
    ),
    PrivateApi(
        "torch.autograd.Variable._execution_engine.queue_callback",
        "see DDP's reducer wait at the end of a backward pass",
        ("rank/requests.py",),
    ),
    PrivateApi(
        "torch.distributed._register_comm_hook",
        "see DDP wait for a communication hook",
        ("rank/requests.py",),
        parameters=(),
    ),
    PrivateApi(
        "torch.nn.parallel.DistributedDataParallel._register_builtin_comm_hook",
        "see DDP wait for a communication hook that is built in",
        ("rank/requests.py",),
        parameters=("self", "comm_hook_type"),
    ),
    PrivateApi(
        "torch._C.Future.wait",
        "wait for a future without reporting it",
        ("rank/requests.py",),
    ),
    # torch: tensors, memory and modules
    PrivateApi(
        "torch.Tensor._version",
        "find writes to the buffer of a receive, and of a collective that ends",
        ("rank/recorder.py", "rank/requests.py"),
        behaves=_counts_writes,
    ),
    PrivateApi(
        "torch.Tensor._is_view",
        "find writes to the buffer of a receive",
        ("rank/recording_group.py",),
        behaves=_tells_views,
    ),
    *_each(
        "torch.{UntypedStorage._cdata,_C._storage_Use_Count}",
        "see a copy that was received into die with its call",
        ("rank/recorder.py",),
    ),
    PrivateApi(
        "torch._C.DisableTorchFunction",
        "read tensors past function modes, as C++ does",
        ("rank/recording_group.py",),
    ),
    PrivateApi(
        "torch._VF",
        "give simulated ranks random numbers of their own in recurrent networks",
        ("simulation/calls.py",),
    ),
    *_each(
        "torch._dynamo.{disable,graph_break}",
        "make an optimizer, and its steps, without torch's compiler",
        ("rank/torch_startup.py",),
    ),
    PrivateApi(
        "torch._dynamo.trace_rules.clear_lru_cache",
        "make a process group without torch's compiler",
        ("rank/torch_startup.py",),
    ),
    *_each(
        "torch.fx.experimental.symbolic_shapes.{expect_true,sym_eq}",
        "go backward without torch's symbolic shapes",
        ("rank/torch_startup.py",),
    ),
    PrivateApi(
        "torch.nested._internal.nested_tensor",
        "import once what every backward of torch 2.15 asks for",
        ("rank/torch_startup.py",),
    ),
    PrivateApi(
        "torch.nn.modules.module._forward_unimplemented",
        "ask whether a misspelt forward is meant",
        ("rank/calling.py",),
    ),
    # numpy and CPython
    *_each(
        "{numpy.random.mtrand._rand,random._inst}",
        "give simulated ranks random numbers of their own",
        ("simulation/calls.py",),
    ),
    PrivateApi(
        "sys._getframe",
        "find the line of a call",
        (
            "core/set_orders.py",
            "core/source_locations.py",
            "rank/arguments.py",
            "rank/calling.py",
            "rank/cuda_mapping.py",
            "rank/replicas.py",
            "rank/requests.py",
            "simulation/calls.py",
        ),
        behaves=_shows_its_caller,
    ),
    PrivateApi(
        "sys._current_frames",
        _WAITS,
        ("rank/threads.py", "simulation/scheduler.py"),
        behaves=_shows_this_frame,
    ),
    PrivateApi("concurrent.futures.thread._WorkItem", _LINES, ("core/source_locations.py",)),
    PrivateApi(
        "concurrent.futures.thread._WorkItem.run",
        _LINES,
        ("core/source_locations.py",),
        variables=("self",),
    ),
    PrivateApi("threading._active", _WAITS, ("rank/threads.py",), behaves=_holds_running_threads),
    *_each(
        "threading.{_limbo,_PyRLock,_RLock._owner,Condition._waiters}", _WAITS, ("rank/threads.py",)
    ),
    PrivateApi(
        "threading._RLock.acquire",
        _WAITS,
        ("rank/threads.py",),
        variables=("self", "blocking", "timeout"),
    ),
    PrivateApi(
        "threading.Condition.wait",
        _WAITS,
        ("rank/threads.py",),
        variables=("self", "timeout", "waiter", "saved_state"),
    ),
    PrivateApi(
        "threading.Thread.join", _WAITS, ("rank/threads.py",), variables=("self", "timeout")
    ),
    PrivateApi(
        "threading.Thread._wait_for_tstate_lock",
        _WAITS,
        ("rank/threads.py",),
        variables=("self", "timeout"),
        until=(3, 12),
    ),
    PrivateApi("queue._PySimpleQueue", _WAITS, ("rank/threads.py",)),
    PrivateApi("_thread.LockType._at_fork_reinit", _WAITS, ("rank/threads.py",)),
    # IPython
    PrivateApi(
        "IPython.core.interactiveshell.InteractiveShell.showtraceback",
        "show a message without a traceback in a notebook",
        ("core/errors.py",),
        mentions="_render_traceback_",
    ),
    PrivateApi(
        "IPython.core.compilerop.CachingCompiler.format_code_name",
        "name the cell of a line",
        ("core/source_locations.py",),
    ),
    # cloudpickle
    PrivateApi(
        "cloudpickle.cloudpickle._make_function",
        "load a program anew for every case",
        ("core/program.py",),
        parameters=("code",),
    ),
    PrivateApi(
        "cloudpickle.cloudpickle._make_skeleton_class",
        "load a program anew for every case",
        ("core/program.py",),
        parameters=("type_constructor", "name", "bases", "type_kwargs", "class_tracker_id"),
    ),
    PrivateApi(
        "cloudpickle.cloudpickle._make_skeleton_enum",
        "load a program anew for every case",
        ("core/program.py",),
        parameters=("bases", "name", "qualname", "members", "module", "class_tracker_id"),
    ),
    PrivateApi(
        "torch._dynamo.eval_frame.OptimizedModule._orig_mod",
        "run what an answer asks torch to compile as it is written",
        ("core/packing.py",),
    ),
    PrivateApi(
        "cloudpickle.cloudpickle.Pickler._dynamic_function_reduce",
        "start a rank without the modules that a program does not use",
        ("core/packing.py",),
        parameters=("self", "func"),
    ),
    PrivateApi(
        "cloudpickle.cloudpickle._function_getstate",
        "start a rank without the modules that a program does not use",
        ("core/packing.py",),
        mentions="_cloudpickle_submodules",
    ),
)


# The comparison with what is installed. --------------------------------------------------

#: Packages whose import takes a second: names are looked up in their source instead.  Besides, a
#: stand-in may be in their place, see ``defer_compiler`` in ``rank/torch_startup.py``.
READ_FROM_SOURCE = ("torch._dynamo.", "torch.fx.experimental.", "ipykernel.")


def checked(table: Sequence[PrivateApi] = PRIVATE_APIS) -> list[PrivateApi]:
    """Return the entries that concern the versions and builds that are installed here."""
    return [api for api in table if _is_expected(api)]


def changes(table: Sequence[PrivateApi] = PRIVATE_APIS) -> list[Change]:
    """Return the entries that are not as they are expected to be."""
    found = ((api, _fault(api)) for api in checked(table))
    return [Change(api, fault) for api, fault in found if fault]


def installed_version(owner: str) -> str:
    """Return the version of CPython or of a package; empty if it is not installed."""
    if owner == "CPython":
        return platform.python_version()
    try:
        return version(owner)
    except PackageNotFoundError:
        return ""


def tested_versions(owner: str) -> str:
    """Return the versions that headcount is tested with: ``2.11 to 2.15``."""
    return " to ".join("{}.{}".format(*one) for one in TESTED[owner])


def _mend(owner: str) -> str:
    if owner in TESTED:
        return f"It is tested with {owner} {tested_versions(owner)}."
    return f"requirements.lock has the version of {owner} that it is tested with."


def _is_expected(api: PrivateApi) -> bool:
    """Return whether what is installed here has to have a name."""
    installed = installed_version(api.owner)
    if not installed:
        return False
    major, minor, *_ = installed.split(".")
    now = int(major), int(minor)
    if (api.since and now < api.since) or (api.until and now > api.until):
        return False
    return not api.where or bool(_resolved(api.where)())


def _fault(api: PrivateApi) -> str:
    """Return what has changed about a name; empty if nothing has."""
    if api.name.startswith(READ_FROM_SOURCE):
        return "" if _is_in_source(api.name) else "is gone"
    try:
        value = _resolved(api.name)
    except (ImportError, AttributeError):
        return "is gone"
    if api.parameters:
        has = tuple(inspect.signature(value).parameters)[: len(api.parameters)]
        if has != api.parameters:
            return f"takes ({', '.join(has)}) and not ({', '.join(api.parameters)})"
    if missing := [name for name in api.variables if name not in value.__code__.co_varnames]:
        return f"has no variable {' or '.join(missing)}"
    if api.mentions and api.mentions not in _mentioned(inspect.unwrap(value).__code__):
        return f"no longer asks for {api.mentions}"
    try:
        fits = api.behaves is None or api.behaves(value)
    except Exception as error:
        return f"raises {type(error).__name__} ({error})"
    return "" if fits else "behaves differently"


def _resolved(name: str) -> Any:
    """Return what a dotted name stands for; ``None`` for an attribute of a class's instances.

    Raises:
        ImportError, AttributeError: there is none.
    """
    first, *rest = name.split(".")
    value: Any = importlib.import_module(first)
    for number, part in enumerate(rest, 1):
        if inspect.ismodule(value) and not hasattr(value, part):
            value = importlib.import_module(".".join((first, *rest[:number])))
        elif inspect.isclass(value) and not hasattr(value, part) and sets_attribute(value, part):
            value = None
        else:
            value = getattr(value, part)
    return value


def sets_attribute(kind: type, attribute: str) -> bool:
    """Return whether the instances of a class written in Python are given an attribute."""
    for one in kind.__mro__:
        code = getattr(vars(one).get("__init__"), "__code__", None)
        if attribute in vars(one).get("__annotations__", ()):
            return True
        if code is not None and attribute in code.co_names:
            return True
    return False


def _mentioned(code: CodeType) -> set[str]:
    """Return the names and texts in the code of a function."""
    found = {*code.co_names, *_texts(code.co_consts)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _mentioned(constant)
    return found


def _texts(constants: Sequence[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)


def _is_in_source(name: str) -> bool:
    """Return whether the source of an installed package defines a name, without importing it."""
    first, *rest = name.split(".")
    spec = find_spec(first)
    assert spec is not None
    assert spec.origin is not None
    place = Path(spec.origin).parent
    while (place / rest[0]).is_dir() or (place / f"{rest[0]}.py").is_file():
        place /= rest.pop(0)
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    body = _statements(file)
    inside: ast.ClassDef | None = None
    for part in rest:
        statement = next((one for one in body if part in _bound(one)), None)
        if statement is None:
            return inside is not None and part in _set_on_self(inside)
        inside = statement if isinstance(statement, ast.ClassDef) else None
        body = inside.body if inside is not None else []
    return True


def _set_on_self(kind: ast.ClassDef) -> set[str]:
    """Return the attributes that the methods of a class set on its instances."""
    return {
        one.attr
        for one in ast.walk(kind)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    }


@functools.cache
def _statements(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module or a class binds."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    nodes = list(ast.walk(statement))
    aliases = {one.asname or one.name for one in nodes if isinstance(one, ast.alias)}
    return aliases | {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
