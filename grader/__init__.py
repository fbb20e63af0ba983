"""Gather Round: a course on collective communication, and the grader behind it.

A student needs twelve names::

    from grader import (
        backends, check, hint, mark, points, predict, progress, replay, reset, run, simulate,
        timeline,
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
    progress()                # which exercises are passed
    backends()                # what can carry messages here: check(broadcast, backend="mpi")
    points(broadcast)         # what it earns; the last cells of a chapter ask, also for nbgrader

Importing the package starts the fork server in the background, so that the
first check does not wait for torch to be imported there.

The rooms, from the bottom up; an import runs downward only:

- ``core``: words for what happened, values, and the wire between judge and rank
- ``submission``: what was handed in, as definitions
- ``trace``: what the judge makes of a rank's events
- ``rank``: what runs inside a rank
- ``course``: how exercises are declared, and the exercises
- ``simulation``: ranks by the thousand, on a virtual clock
- ``server``: the processes that ranks are forked from
- ``launch``: how ranks are started, supervised and ended
- ``judge``: an exercise, a submission and a launcher make a verdict
- ``report``: verdicts for people and programs, and pictures of runs
- ``classroom``: many submissions, as they arrive from a class
- ``bench``: how fast a collective is
- ``api``, ``doctor``, ``cli``: for notebooks and the command line
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from grader.core import __version__

if TYPE_CHECKING:
    from types import TracebackType

    from grader.api import check, hint, points, predict, progress, reset, run
    from grader.api.replay import replay
    from grader.api.simulate import simulate
    from grader.api.timeline import timeline
    from grader.core.events import mark
    from grader.launch.backends import backends

__all__ = [
    "__version__",
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
]


#: Where the names are.
_HOMES = {
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
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line and the ranks import this
    # package too, and most of them need little of it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"grader.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


def _is_interactive_import() -> bool:
    """Whether someone imports the package to use it.

    Not so where ``python -m grader...`` runs one of its modules, nor in the
    children of multiprocessing, which import their parent's modules again; if
    the parent is such a command they do so under its name, as no child yet.
    """
    program = sys.argv[0] if sys.argv else ""
    if program == "-m" or program.startswith(__path__[0] + os.sep):
        return False
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is None or multiprocessing.parent_process() is None


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


if _is_interactive_import():
    from grader.launch.launchers import warm_up

    _hide_our_frames()
    warm_up()
