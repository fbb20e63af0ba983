"""A person's own script in a rank: it runs as ``torchrun`` would run it.

The script gets its arguments, its working directory, the environment of ``torchrun``, and a module
``__main__`` of its own; what it does with the default process group is up to it, see
:func:`grader.rank.guard.open_management`.
"""

from __future__ import annotations

import atexit
import functools
import importlib.machinery
import logging
import multiprocessing
import multiprocessing.util
import os
import runpy
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.multiprocessing

from grader.core.source_locations import follow_script, is_graders, is_students
from grader.rank.cuda_mapping import MAPPED, map_cuda
from grader.rank.guard import remark

__all__ = ["Script", "run_script"]


@dataclass(frozen=True)
class Script:
    """A script to run.

    Attributes:
        name: its path, or the name of a module.
        is_module: whether it is a module, as of ``python -m``.
        arguments: its arguments.
        folder: its working directory.
        environment: the variables of its environment, without those that differ by rank.
        path: ``sys.path`` without its first entry, which is the script's folder.
        cuda: ``map`` to do on the CPU what it does on a GPU, ``available`` to tell it besides that
            there are GPUs, or ``off``.
    """

    name: str
    is_module: bool
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    path: list[str] = field(default_factory=list)
    cuda: str = "map"

    @property
    def root(self) -> str:
        """The folder whose files are its own: of a module, that of the package it is in."""
        if self.is_module:
            package = importlib.machinery.PathFinder.find_spec(
                self.name.partition(".")[0], [self.folder, *self.path]
            )
            places = (package and package.submodule_search_locations) or [self.folder]
            return next(iter(places))
        path = os.path.join(self.folder, self.name)
        return path if os.path.isdir(path) else os.path.dirname(path)


#: What torchrun sets besides, where nothing restarts.
_ELASTIC = {
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_MAX_RESTARTS": "0",
}


def run_script(script: Script) -> None:
    """Run a script on this rank.

    Raises:
        SystemExit: the script has ended with another status than 0.
        BaseException: the script has raised; its traceback is printed, as Python does.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.chdir(script.folder)
    os.environ.clear()
    os.environ.update(script.environment)
    for name, value in _ELASTIC.items():
        os.environ.setdefault(name, value)  # torchrun may have set it
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        ROLE_RANK=str(rank),
        GROUP_RANK="0",
        WORLD_SIZE=str(size),
        LOCAL_WORLD_SIZE=str(size),
        ROLE_WORLD_SIZE=str(size),
    )
    torch.set_num_threads(int(os.environ.setdefault("OMP_NUM_THREADS", "1")))
    sys.path[:] = [script.folder if script.is_module else script.root, *script.path]
    sys.argv[:] = [script.name, *script.arguments]
    follow_script(script.root, script.folder)
    _begin_exit_handlers()
    _close_in_children()
    _spawn_in_place(rank, size)
    if script.cuda != "off":
        map_cuda(note_mapping, size, rank, pretends=script.cuda == "available")
    try:
        _execute(script)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        _finish()
        if end.code not in (None, 0):
            raise
    except BaseException as error:
        _print_traceback(error)
        _finish()
        raise
    else:
        _finish()


@functools.cache
def note_mapping() -> None:
    """Report, once, that a GPU's work is done on the CPU."""
    remark(MAPPED)


# The program. ---------------------------------------------------------------------


def _execute(script: Script) -> None:
    """Run a script as the main program: a file, a folder or archive, or a module."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    path = os.path.join(script.folder, script.name)
    if script.is_module:
        try:
            runpy.run_module(script.name, run_name="__main__", alter_sys=True)
        except ImportError as error:
            if _raised_by(error) in _RUNPY:  # and not by an import of the module's
                raise SystemExit(f"python -m {script.name}: {error}") from None
            raise
    elif os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
    else:
        main.__dict__.update(
            __file__=script.name,
            __cached__=None,
            __loader__=importlib.machinery.SourceFileLoader("__main__", script.name),
        )
        # the whole path, by which its lines are found wherever the script goes
        exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


#: The file of :mod:`runpy`, which Python may have frozen.
_RUNPY = (runpy.__file__, "<frozen runpy>")


def _raised_by(error: BaseException) -> str:
    """Return the file in which an exception was raised."""
    found, traceback = "", error.__traceback__
    while traceback is not None:
        found, traceback = traceback.tb_frame.f_code.co_filename, traceback.tb_next
    return found


def _print_traceback(error: BaseException) -> None:
    """Print a traceback as Python does, without the frames that are ours."""

    def theirs(one: types.TracebackType | None) -> types.TracebackType | None:
        if one is None:
            return None
        rest, file = theirs(one.tb_next), one.tb_frame.f_code.co_filename
        if file in _RUNPY or is_graders(file):
            return rest
        return types.TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)

    traceback.print_exception(type(error), error, theirs(error.__traceback__))
    sys.stderr.flush()


# The end of the program. ----------------------------------------------------------


def _begin_exit_handlers() -> None:
    """Forget what other code has registered for the end of the process that this one forked from.

    It would run here as well, and remove that one's files.
    """
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    atexit.register(logging.shutdown)
    atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]


def _finish() -> None:
    """Wait for the script's threads, and call what it has registered for its end."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


# Processes of the script. ---------------------------------------------------------


def _close_in_children() -> None:
    """Refuse the process group in processes that the script forks: it is connected once."""

    def close() -> None:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise RuntimeError(
                "this process was started by a rank, whose process group it cannot use; let"
                " `run --ranks N` start the ranks"
            )

        dist.init_process_group = refuse
        dist.distributed_c10d.init_process_group = refuse
        dist.distributed_c10d._update_default_pg(None)

    os.register_at_fork(after_in_child=close)


def _spawn_in_place(rank: int, size: int) -> None:
    """Let a script that starts its ranks itself run each of them in the rank that there is."""

    def in_place(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def start(
            fn: Callable[..., Any], args: Any = (), nprocs: int = 1, *more: Any, **named: Any
        ) -> Any:
            if not _is_rank(fn):
                return real(fn, args, nprocs, *more, **named)
            _require_count("mp.spawn", nprocs, size)
            fn(rank, *args)
            return _EndedRanks()

        return start

    for name in ("spawn", "start_processes"):
        real = getattr(torch.multiprocessing, name)
        setattr(torch.multiprocessing, name, in_place(real))
    own = type("Process", (_RankProcess,), {"started": [], "rank": rank, "size": size})
    modules: tuple[Any, ...] = (torch.multiprocessing, multiprocessing)
    for module in modules:
        module.Process = _process_class(multiprocessing.Process, own, multiprocessing.__name__)
    context: Any = multiprocessing.context
    for name in multiprocessing.get_all_start_methods():  # what get_context returns has its own
        start = type(multiprocessing.get_context(name))
        start.Process = _process_class(start.Process, own, context.__name__)  # type: ignore[attr-defined]
        setattr(context, start.Process.__name__, start.Process)  # type: ignore[attr-defined]


class _EndedRanks:
    """What ``mp.spawn`` returns of ranks that have ended."""

    def join(self, *_: Any, **__: Any) -> bool:
        return True


def _require_count(what: str, asked: int, size: int) -> None:
    if not asked:
        raise RuntimeError(
            f"{what} starts no process, for want of GPUs: run it with --cuda available"
        )
    if asked != size:
        raise RuntimeError(f"{what} starts {asked} processes: run it with --ranks {asked}")


def _is_rank(function: Any) -> bool:
    """Return whether a function that is to run in a process of its own is that of a rank."""
    return not dist.is_initialized() and _reaches(function, "init_process_group")


def _process_class(real: Any, own: Callable[..., Any], module: str) -> type:
    """Return a class of processes of which those that are the script's ranks are ``own``.

    A process that is spawned unpickles the class by the name of the real one in ``module``, and
    gets Python's own.
    """

    class Process(real):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            target = kwargs.get("target", args[1] if len(args) > 1 else None)
            if cls is Process and _is_rank(target):
                return own(*args, **kwargs)
            return super().__new__(cls)

    Process.__module__ = module
    Process.__name__ = Process.__qualname__ = real.__name__
    return Process


class _RankProcess:
    """Stands for a process that a script starts as a rank; one of them runs in this process."""

    started: list[_RankProcess]
    rank: int
    size: int

    def __init__(
        self, group: Any = None, target: Any = None, name: Any = None,
        args: Any = (), kwargs: Any = None, *, daemon: Any = None,
    ) -> None:  # fmt: skip
        self._call = (target, args, kwargs or {})
        self.exitcode: int | None = None
        self.pid = self.ident = os.getpid()
        self.daemon, self.name = bool(daemon), name or "rank"

    def start(self) -> None:
        self.started.append(self)

    def join(self, timeout: float | None = None) -> None:
        _require_count("the script", len(self.started), self.size)
        mine = self.started[self.rank]
        if mine.exitcode is None:
            for one in self.started:
                one.exitcode = 0
            target, args, kwargs = mine._call
            target(*args, **kwargs)

    def is_alive(self) -> bool:
        return self.exitcode is None

    def terminate(self) -> None:
        pass

    kill = close = terminate


def _reaches(function: Any, name: str) -> bool:
    """Return whether a function of the script's names something, or one that it calls does."""
    seen: set[types.CodeType] = set()

    def names(code: types.CodeType) -> Iterator[str]:
        yield from code.co_names
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from names(constant)

    waiting = [function]
    while waiting:
        one = waiting.pop()
        code = getattr(one, "__code__", None)
        if code is None or code in seen or not is_students(code.co_filename):
            continue
        seen.add(code)
        for used in names(code):
            if used == name:
                return True
            called = one.__globals__.get(used)
            if isinstance(called, types.FunctionType):
                waiting.append(called)
    return False
