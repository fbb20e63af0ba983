"""A person's own script in a rank: it runs as ``torchrun`` would run it.

The script gets its arguments, its working directory, the environment of its launcher, and a module
``__main__`` of its own; what it does with the default process group is up to it, see
:func:`headcount.rank.guard.open_management`.
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
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.multiprocessing

from headcount.core.source_locations import follow_script, is_own
from headcount.rank.cuda_mapping import MAPPED, explain_bare_number, map_cuda
from headcount.rank.guard import remark
from headcount.rank.launcher_variables import launcher_variables
from headcount.rank.spawning import close_in_children, spawn_in_place

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
        launcher: whose variables tell it its rank.
    """

    name: str
    is_module: bool
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    path: list[str] = field(default_factory=list)
    cuda: str = "map"
    launcher: str = "torchrun"

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
    if script.launcher == "torchrun":
        for name, value in _ELASTIC.items():
            os.environ.setdefault(name, value)  # torchrun may have set it
    os.environ.update(launcher_variables(script.launcher, rank, size))
    torch.set_num_threads(int(os.environ.setdefault("OMP_NUM_THREADS", "1")))
    sys.path[:] = [script.folder if script.is_module else script.root, *script.path]
    sys.argv[:] = [script.name, *script.arguments]
    follow_script(script.root, script.folder)
    _begin_exit_handlers()
    close_in_children()
    spawn_in_place(rank, size)
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
        if script.cuda != "off":
            explain_bare_number(error, size)
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
    shown = traceback.TracebackException.from_exception(error)
    _leave_out_ours(shown)
    print(*shown.format(), sep="", end="", file=sys.stderr, flush=True)


def _leave_out_ours(shown: traceback.TracebackException | None) -> None:
    """Remove our frames from what is to be printed of an exception and of those before it."""
    while shown is not None:
        shown.stack[:] = [
            one for one in shown.stack if one.filename not in _RUNPY and not is_own(one.filename)
        ]
        _leave_out_ours(shown.__cause__)
        shown = shown.__context__


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
