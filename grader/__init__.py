"""Gather Round: a course on collective communication, and the grader behind it.

A student needs thirteen names, and an engineer with tests one more::

    from grader import (
        assert_no_hang, backends, check, hint, mark, points, predict, progress, replay, reset,
        run, simulate, timeline, torchrun,
    )

    check(broadcast)          # judge a function against the exercise of its name
    hint("broadcast")         # a hint; call it again for a plainer one
    reset("broadcast")        # begin again: its stub in a new cell
    predict("rank 0 has 7")   # what you expect, shown beside the next run
    run(function, 4, x)       # run any function on four ranks
    simulate(function, 1024)  # run it on a thousand, on a virtual clock
    replay(broadcast, 4)      # step through its messages
    timeline(run(function, 4, x))  # see where the time of a run went
    mark("backward ends")     # in such a function: a name for a place, on the time line
    torchrun(script, 2)       # launch a script of your own, without the grader
    progress()                # which exercises are passed
    assert_no_hang(function, ranks=4)  # the same in a test of your own: it passes, or says why
    backends()                # what can carry messages here: check(broadcast, backend="mpi")
    points(broadcast)         # what it earns; the last cells of a chapter ask, also for nbgrader

In the kernel of a notebook, importing the package starts the fork server in the background, so
that the first check does not wait for torch to be imported there, and lets a missing name be
explained by the cell that defines it.  Elsewhere the import starts nothing and changes nothing
until one of these names is asked for.

The rooms, from the bottom up; an import runs downward only.  Those as far as ``script`` are the
engine, which knows none of the course's exercises:

- ``core``: words for what happened, values, and the wire between judge and rank
- ``submission``: what was handed in, as definitions
- ``trace``: what the judge makes of a rank's events
- ``rank``: what runs inside a rank
- ``exercise``: what an exercise is, and how one is declared
- ``simulation``: ranks by the thousand, on a virtual clock
- ``server``: the processes that ranks are forked from
- ``launch``: how ranks are started, supervised and ended
- ``judge``: an exercise, a submission and a launcher make a verdict
- ``report``: verdicts for people and programs, and pictures of runs
- ``script``: a person's own script on recorded ranks
- ``course``: the exercises of the course, their hints and the mistakes that people make
- ``classroom``: many submissions, as they arrive from a class
- ``bench``: how fast a collective is
- ``api``, ``doctor``, ``pytest_plugin``, ``cli``: for notebooks, tests and the command line
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from grader.core import __version__

if TYPE_CHECKING:
    from types import TracebackType

    from grader.api import check, hint, points, predict, progress, reset, run
    from grader.api.replay import replay
    from grader.api.simulate import simulate
    from grader.api.timeline import timeline
    from grader.api.torchrun import torchrun
    from grader.core.events import mark
    from grader.launch.backends import backends
    from grader.pytest_plugin import assert_no_hang

__all__ = [
    "__version__",
    "assert_no_hang",
    "backends",
    "check",
    "hint",
    "mark",
    "points",
    "predict",
    "progress",
    "replay",
    "reset",
    "run",
    "simulate",
    "timeline",
    "torchrun",
]


#: Where the names are.
_HOMES = {
    "assert_no_hang": "pytest_plugin",
    "backends": "launch.backends",
    "check": "api",
    "hint": "api",
    "mark": "core.events",
    "points": "api",
    "predict": "api",
    "progress": "api",
    "replay": "api.replay",
    "reset": "api",
    "run": "api",
    "simulate": "api.simulate",
    "timeline": "api.timeline",
    "torchrun": "api.torchrun",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line and the ranks import this
    # package too, and most of them need little of it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _hide_our_frames()
    try:
        return getattr(importlib.import_module(f"grader.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        from grader.core.errors import MissingPackage

        if (missing := MissingPackage.of(name, error)) is None:
            raise
        raise missing from None


def __dir__() -> list[str]:
    return __all__


@cache
def _hide_our_frames() -> None:
    """Let the traceback of an exception of ours hold the user's own frames alone.

    In a notebook such an exception renders itself, see :mod:`grader.core.errors`.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        from grader.core.errors import GraderError
        from grader.core.source_locations import students_part

        if isinstance(error, GraderError):
            trace = students_part(trace)
            error.__traceback__ = trace
        before(kind, error, trace)

    sys.excepthook = hook


def _in_kernel() -> bool:
    """Return whether this is the kernel of a notebook, in which people wait for every cell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


if _in_kernel():
    from grader.core.missing_names import explain_missing_names
    from grader.launch.launchers import warm_up

    explain_missing_names()
    warm_up()
