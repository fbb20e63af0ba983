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
explained by the cell that defines it.  Elsewhere the import starts nothing and patches nothing.

The rooms, from the bottom up; an import runs downward only.  Processes, records and verdicts on a
hang are those of :mod:`headcount`, which knows nothing of this package:

- ``submission``: what was handed in, as definitions
- ``instruments``: what adapters look into a rank with
- ``exercise``: what an exercise is, and how one is declared
- ``sandbox``: what strangers' code needs
- ``judge``: an exercise, a submission and a launcher make a verdict
- ``report``: verdicts for people and programs, and pictures of runs
- ``course``: the exercises of the course, their hints and known answers
- ``classroom``: many submissions, as they arrive from a class
- ``bench``: how fast a collective is
- ``api``, ``doctor``, ``cli``: for notebooks and the command line
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from headcount.core.source_locations import count_as_own
from headcount.server.ahead import import_ahead

if TYPE_CHECKING:
    from grader.api import check, hint, points, predict, progress, reset, run
    from grader.api.replay import replay
    from grader.api.simulate import simulate
    from grader.api.timeline import timeline
    from grader.api.torchrun import torchrun
    from headcount.core.events import mark
    from headcount.launch.backends import backends
    from headcount.pytest_plugin import assert_no_hang

#: The version of the course and its grader, which the package's metadata reads from here.
__version__ = "1.0.0"

#: Where the public names are, beside the version.
_HOMES = {
    "assert_no_hang": "headcount.pytest_plugin",
    "backends": "headcount.launch.backends",
    "check": "grader.api",
    "hint": "grader.api",
    "mark": "headcount.core.events",
    "points": "grader.api",
    "predict": "grader.api",
    "progress": "grader.api",
    "replay": "grader.api.replay",
    "reset": "grader.api",
    "run": "grader.api",
    "simulate": "grader.api.simulate",
    "timeline": "grader.api.timeline",
    "torchrun": "grader.api.torchrun",
}

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


# a traceback that a student sees ends at the student's own code, on ranks as well
count_as_own(os.path.dirname(__file__), os.path.dirname(os.path.realpath(__file__)))
# with which adapters look into a rank, on the clock of its call
import_ahead("grader.instruments")


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line and the ranks import this
    # package too, and most of them need little of it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from grader.errors import MissingPackage

        if (missing := MissingPackage.from_error(name, error)) is None:
            raise
        raise missing from None


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """Define the names above in a notebook, but for those that it has: ``%load_ext grader``."""
    shell.push({name: __getattr__(name) for name in _HOMES if name not in shell.user_ns})


def _in_kernel() -> bool:
    """Return whether this is the kernel of a notebook, in which people wait for every cell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


if _in_kernel():
    from grader.api.cell_errors import explain_errors
    from headcount.launch.launchers import warm_up

    explain_errors()
    warm_up()
