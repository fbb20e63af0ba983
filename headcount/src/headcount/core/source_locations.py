"""Source locations: which line of the student's is running, and the text of a line."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import thread as futures_thread
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, TypeVar, cast

from headcount.core.notebook import ipython_shell
from headcount.core.verdict import BESIDE, PATH, Site, SourceLine, Wait

__all__ = [
    "NAME",
    "OWN_FOLDERS",
    "TEXT",
    "begun_by_torch",
    "count_as_own",
    "follow_script",
    "following_script",
    "is_own",
    "is_students",
    "line_here",
    "lines_of",
    "live_line",
    "own_folders",
    "remember_thread_starts",
    "standing_for",
    "students_part",
    "shorten_name",
    "with_source",
]


class Located(Protocol):
    """What names places in a program: a :class:`~headcount.core.verdict.Failure`, for one."""

    @property
    def site(self) -> Site | None: ...
    @property
    def frames(self) -> tuple[SourceLine, ...]: ...
    @property
    def waits(self) -> tuple[Wait, ...]: ...
    @property
    def cycle(self) -> tuple[int, ...]: ...


_Located = TypeVar("_Located", bound=Located)


#: Limit on the lines of a deadlock that are quoted.
_QUOTED = 6

#: The variable that names folders of modules that count as our own: those of a package that uses
#: this one, and, in a sandbox, those outside of it, from which code is sent that has their names.
OWN_FOLDERS = "HEADCOUNT_OWN_FOLDERS"

_HERE = Path(__file__).parent.parent

#: The folders whose modules are our own, with those of packages that use this one.
_own = list(
    dict.fromkeys(
        [
            str(_HERE),
            str(_HERE.resolve()),
            *filter(None, os.environ.get(OWN_FOLDERS, "").split(os.pathsep)),
        ]
    )
)


def count_as_own(*folders: str) -> None:
    """Let the modules in these folders be no part of a program that runs, as ours are none."""
    global _OURS, LIBRARIES
    _own.extend(folder for folder in folders if folder not in _own)
    _OURS, LIBRARIES = _own_roots(), _library_roots()
    for cached in (is_students, shorten_name, _is_passed):
        cached.cache_clear()


def own_folders() -> str:
    """Return the folders of our own modules, as :data:`OWN_FOLDERS` passes them on."""
    return os.pathsep.join(_own)


def _torch() -> Path:
    """Return torch's folder without importing torch, which takes seconds."""
    spec = find_spec("torch")
    assert spec is not None, "torch is not installed: pip install -r requirements.txt"
    assert spec.origin is not None
    return Path(spec.origin).parent


def _library_roots() -> tuple[str, ...]:
    # paths that a rank reports from inside a sandbox are looked up outside of it
    roots = {_torch(), *map(Path, _own)}
    paths = sysconfig.get_paths()
    # of the scripts there, one may have started this process
    places = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    roots.update(Path(paths[key]) for key in places)
    roots.add(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    every = {str(root) for root in roots} | {str(root.resolve()) for root in roots}
    return tuple(root + os.sep for root in every)


LIBRARIES = _library_roots()

#: Characters of a name and of a text that are sent; longer ones are cut.
NAME, TEXT = 1024, 2000

#: Torch's folder, and the module of ``dist.send`` and ``dist.recv``.
_TORCH = str(_torch())
_DISTRIBUTED = os.path.join(_TORCH, "distributed", "distributed_c10d.py")

#: Files and folders of torch that lie between a call of an operation and the recording group.
_PASSED = tuple(
    os.path.join(_TORCH, *parts)
    for parts in (
        ("distributed", "distributed_c10d.py"),
        ("distributed", "c10d_logger.py"),
        ("distributed", "_functional_collectives.py"),
        ("distributed", "nn", "functional.py"),
        ("utils", "_contextlib.py"),
        ("_compile.py",),
        ("_dynamo", ""),
        ("_ops.py",),
        ("overrides.py",),
    )
)


def _own_roots() -> tuple[str, ...]:
    return tuple(f"{folder}{os.sep}" for folder in _own)


_OURS = _own_roots()


#: Of a person's own script: the folder of its files, by both of its names if there is a link on the
#: way, and the one that names are relative to.
_script: tuple[tuple[str, ...], str] | None = None


def follow_script(root: str, folder: str) -> None:
    """Let places be those of a person's own script from now on, with the names of their files.

    Args:
        root: a folder whose files are the script's, also where it is among the libraries.
        folder: the folder that names are relative to, if they are in it.
    """
    roots = dict.fromkeys((os.path.realpath(root), os.path.abspath(root)))
    _set_script((tuple(os.path.join(one, "") for one in roots), os.path.join(folder, "")))


@contextlib.contextmanager
def following_script(root: str, folder: str) -> Iterator[None]:
    """Let places be those of a script in this context, see :func:`follow_script`."""
    before = _script
    follow_script(root, folder)
    try:
        yield
    finally:
        _set_script(before)


def _set_script(script: tuple[tuple[str, ...], str] | None) -> None:
    global _script
    _script = script
    is_students.cache_clear()
    shorten_name.cache_clear()


@functools.lru_cache(maxsize=4096)
def is_students(filename: str) -> bool:
    """Return whether a file name is the student's: neither a library's nor ours."""
    # code compiled by Cython has the name of its source, wherever that was
    if filename.endswith((".pyx", ".pxi")) or filename.startswith(("<frozen ", "<__array")):
        return False
    if not filename.startswith(LIBRARIES):
        return True
    # a script may itself be installed; but an environment in the script's folder is none of it
    roots = [one for one in _script[0] if one.startswith(LIBRARIES)] if _script else []
    return filename.startswith(tuple(roots)) and not is_own(filename)


def is_own(filename: str) -> bool:
    """Return whether a file is one of ours."""
    return filename.startswith(_OURS)


@functools.lru_cache(maxsize=4096)
def shorten_name(name: str) -> str:
    """Return the name of a file or a function as it is sent: its end, if it is very long.

    A path need not be UTF-8, and a message must be; other bytes are replaced.
    """
    if _script is not None and os.path.isabs(name):
        name = PATH + name.removeprefix(_script[1])
    return name[-NAME:].encode("utf-8", "replace").decode()


def line_here() -> tuple[str, int, bool]:
    """Return the file and line of the student's innermost frame, and whether its call blocks.

    The call blocks if ``dist.send`` or ``dist.recv`` is between the student's frame and this
    one, since these wait for their request at once.  In a thread without a frame of the
    student's, such as one whose target is ``dist.recv`` itself, the line is the one that started
    the thread, or that handed the call to a pool of threads.  It is ``("", 0, …)`` if there is
    neither.
    """
    frame: FrameType | None = sys._getframe(1)
    blocking, handed_over = False, None
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        if is_students(filename):
            return shorten_name(filename), frame.f_lineno, blocking
        if code.co_name in ("send", "recv") and filename == _DISTRIBUTED:
            blocking = True
        if code is _RUN_ITEM:
            handed_over = _handed_over.get(frame.f_locals["self"])
        frame = frame.f_back
    place = _stands_for.get(threading.get_ident()) or handed_over
    return *(place or _thread_starts.get(threading.current_thread(), ("", 0))), blocking


#: By thread, the line of the student's that it runs for, see :func:`standing_for`.
_stands_for: dict[int, tuple[str, int]] = {}


@contextlib.contextmanager
def standing_for(place: tuple[str, int]) -> Iterator[None]:
    """Let this thread stand for one that has called it at a file and line of the student's."""
    ident = threading.get_ident()
    _stands_for[ident] = place
    try:
        yield
    finally:
        del _stands_for[ident]


def begun_by_torch() -> bool:
    """Return whether torch begins the operation that is being begun, and not its caller.

    ``Join``, DDP and others start operations of their own, whose requests the program never gets.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_passed(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH + os.sep)


@functools.lru_cache(maxsize=4096)
def _is_passed(filename: str) -> bool:
    return filename.startswith((*_PASSED, *_OURS))


#: The file and line at which each thread was started, see :func:`remember_thread_starts`.
_thread_starts: weakref.WeakKeyDictionary[threading.Thread, tuple[str, int]] = (
    weakref.WeakKeyDictionary()
)


#: The file and line at which each call was handed to a pool of threads.
_handed_over: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

_RUN_ITEM = futures_thread._WorkItem.run.__code__


def remember_thread_starts() -> None:
    """Record from now on at which line of the student's each thread of this process starts.

    Of a pool's threads that line says nothing, since each starts with whatever call comes first:
    of each call, the line that has handed it over is recorded.
    """
    start, make = threading.Thread.start, futures_thread._WorkItem.__init__

    def noting_start(self: threading.Thread) -> None:
        file, line, _ = line_here()
        if line:
            _thread_starts[self] = file, line
        start(self)

    def noting_call(self: Any, *args: Any, **kwargs: Any) -> None:
        file, line, _ = line_here()
        if line:
            _handed_over[self] = file, line
        make(self, *args, **kwargs)

    threading.Thread.start = noting_start  # type: ignore[method-assign]
    futures_thread._WorkItem.__init__ = noting_call  # type: ignore[method-assign]


def lines_of(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """Return the student's frames of a traceback: file, line and function, outermost first."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_students(code.co_filename):
            found.append(
                (shorten_name(code.co_filename), traceback.tb_lineno, shorten_name(code.co_name))
            )
        traceback = traceback.tb_next
    return found


def students_part(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of libraries and of ours."""
    if traceback is None:
        return None
    rest = students_part(traceback.tb_next)
    if not is_students(traceback.tb_frame.f_code.co_filename):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def live_line(site: Site) -> str:
    """Return the source of a line of this process's own program, or of a cell that it has run.

    It must not be used for a file name reported by a rank of another user's submission, which
    could be the name of any file on this machine.
    """
    return linecache.getline(site.path, site.line).strip()


def with_source(failed: _Located, line_of: Callable[[Site], str]) -> _Located:
    """Return a failure with the lines quoted that it points at.

    Args:
        failed: a failure, or another dataclass with its fields.
        line_of: returns the text of a line, or an empty string if it is not known.
    """
    frames = failed.frames or tuple(map(SourceLine, _sites(failed)[:_QUOTED]))
    several = len({frame.site.file for frame in frames}) > 1
    translated = tuple(
        replace(
            frame,
            text=line_of(frame.site)[:200],
            place=_place_text(frame.site) if several else "",
        )
        for frame in frames
    )
    if not failed.frames and not any(frame.text for frame in translated):
        return failed
    return cast(_Located, replace(cast(Any, failed), frames=translated))


def _sites(failed: Located) -> list[Site]:
    """Return the places that a failure names, once each, those of a deadlock's cycle first."""
    inner = [wait.site for wait in failed.waits if wait.rank in failed.cycle]
    every = [failed.site, *inner, *(wait.site for wait in failed.waits)]
    return list(dict.fromkeys(site for site in every if site is not None and site.file))


def _place_text(site: Site) -> str:
    """Return a line with its file as the student knows it: a cell has the number beside it."""
    shell = ipython_shell()
    if site.file.startswith((BESIDE, PATH, "cell ")):
        return str(site)
    label = os.path.basename(site.file)
    if shell is not None and hasattr(shell, "compile"):
        found = getattr(shell.compile, "format_code_name", lambda _: None)(site.file)
        if found:  # ("Cell", "In[3]")
            label = found[1].replace("In[", "In [")
    return f"{label}, line {site.line}"
