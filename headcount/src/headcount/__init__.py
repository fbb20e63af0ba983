"""headcount: which rank did not show up, and why.

It runs the code of a distributed program on recorded ranks, unchanged, and names a hang at once
from the graph of who waits for whom::

    from headcount import assert_no_hang, run, simulate

    run(function, 4, x)       # on four processes that form a real group; results, or why it hangs
    simulate(function, 1024)  # on a thousand simulated ranks, on a virtual clock
    assert_no_hang(function, ranks=4)  # in a test of your own

Importing it starts nothing and patches nothing.  The rooms, from the bottom up; an import runs
downward only:

- ``core``: diagnoses, errors, values, events, and the wire between the judge and a rank
- ``trace``: matched messages, who waits for whom, orders of arrival, NCCL's rules, dumps
- ``rank``: what runs inside a rank: the recording group, requests, transports, seccomp
- ``server``: the processes that ranks are forked from, and what their children do
- ``launch``: starts, supervises and ends worlds; root causes
- ``report``, ``runs``: a function on every rank of a world
- ``simulation``, ``simulations``: ranks by the thousand, on a virtual clock
- ``script``: a person's own script: ``run``, ``explain``
- ``pytest_plugin``, ``cli``: for tests and the command line
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headcount.core.errors import HeadcountError, RequestError, RunFailed, Stopped, WorldError
    from headcount.core.events import mark
    from headcount.core.verdict import Diagnosis, Failure
    from headcount.launch.backends import backends
    from headcount.pytest_plugin import assert_no_hang
    from headcount.rank.same import same
    from headcount.runs import Run, run
    from headcount.simulations import SimulatedRun, simulate
    from headcount.trace.trace import Trace

#: The version, which the package's metadata reads from here.
__version__ = "0.1.0"

#: Where the public names are, beside the version.
_HOMES = {
    "Diagnosis": "core.verdict",
    "Failure": "core.verdict",
    "HeadcountError": "core.errors",
    "RequestError": "core.errors",
    "Run": "runs",
    "RunFailed": "core.errors",
    "SimulatedRun": "simulations",
    "Stopped": "core.errors",
    "Trace": "trace.trace",
    "WorldError": "core.errors",
    "assert_no_hang": "pytest_plugin",
    "backends": "launch.backends",
    "mark": "core.events",
    "run": "runs",
    "same": "rank.same",
    "simulate": "simulations",
}

__all__ = [
    "__version__",
    "Diagnosis",
    "Failure",
    "HeadcountError",
    "RequestError",
    "Run",
    "RunFailed",
    "SimulatedRun",
    "Stopped",
    "Trace",
    "WorldError",
    "assert_no_hang",
    "backends",
    "mark",
    "run",
    "same",
    "simulate",
]


def __getattr__(name: str) -> Any:
    # imported when first used: ranks import this package too, and need little of it
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"headcount.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
