"""``grader doctor``: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader import __version__
from grader.private_apis import PRIVATE_APIS as OWN_PRIVATE_APIS
from grader.report.looks import Look
from headcount.core.private_apis import (
    PRIVATE_APIS,
    TESTED,
    changes,
    checked,
    tested_versions,
)

__all__ = ["Finding", "examine", "findings", "private_api_findings"]


@dataclass(frozen=True)
class Finding:
    """The result of one examination of this machine.

    Attributes:
        what: what was examined.
        state: ``ok``, ``missing`` (a part of the course is unavailable without it) or
            ``broken`` (the course does not work without it).
        detail: what was found, or what to do.
    """

    what: str
    state: str
    detail: str


_LOOKS = {"ok": Look.PASSED, "missing": Look.SKIPPED, "broken": Look.FAILED}


def examine() -> int:
    """Print every finding; return 0 if the course works here, else 1."""
    table = Table.grid(padding=(0, 2))
    found = []
    for finding in findings():
        found.append(finding)
        look = _LOOKS[finding.state]
        table.add_row(Text(look.mark, style=look.terminal), finding.what, Text(finding.detail))
    Console(highlight=False).print(table)
    return 1 if any(finding.state == "broken" for finding in found) else 0


def findings() -> Iterator[Finding]:
    """Yield the findings, the essential ones first."""
    yield Finding(
        "grader", "ok", f"{__version__}, Python {platform.python_version()}, {platform.system()}"
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("processor", "ok", f"{cores} cores; worlds of 8 ranks share them")
    yield from _torch()
    yield from _world()
    yield from private_api_findings()
    yield _module("jupyterlab", "JupyterLab", "the course: pip install 'gather-round[course]'")
    yield _module("nbval", "nbval", "tests of notebooks: pip install 'gather-round[course]'")
    yield from _sandbox()
    yield _compiler()
    yield _command("ninja", "ninja", "load_inline of chapter 18: apt install ninja-build")
    yield _command(("chromium", "google-chrome"), "Chromium", "browser tests: apt install chromium")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", "broken", f"{error}; pip install -r requirements.txt")
        return
    version = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
    first, last = TESTED["torch"]
    known = first <= version <= last
    note = "" if known else f"; the grader is tested with {tested_versions('torch')}"
    yield Finding("torch", "ok" if known else "missing", torch.__version__ + note)
    from headcount.launch.backends import known_backends

    for entry in known_backends().values():
        reason = entry.missing()
        if reason and entry.used_in:
            yield Finding(entry.title, "missing", f"for {entry.used_in}: {reason}")
        else:
            yield Finding(entry.title, "broken" if reason else "ok", reason or entry.found())


def _world() -> Iterator[Finding]:
    """Start two ranks and run an all-reduce on them."""
    from grader.submission.submission import live_program
    from headcount.core.errors import HeadcountError
    from headcount.launch.launchers import ForkServer, default_launcher
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    try:
        launcher = default_launcher()
        started = time.monotonic()
        with ProcessWorld(launcher, 2, live_program(_greet)) as world:
            outcome = world.run(Job("greet", ((), ()), allowed=None))
        launcher.settle()
        seconds = time.monotonic() - started
    except HeadcountError as error:
        yield Finding("two ranks", "broken", str(error))
        return
    if outcome.failure is not None:
        yield Finding("two ranks", "broken", outcome.failure.message)
        return
    how = "forked" if isinstance(launcher, ForkServer) else "started as fresh interpreters"
    yield Finding("two ranks", "ok", f"{how}, joined and done in {1e3 * seconds:.0f} ms")


def private_api_findings() -> Iterator[Finding]:
    """Yield how many private APIs are as the grader expects, and each that is not."""
    number, changed = 0, []
    for table in (PRIVATE_APIS, OWN_PRIVATE_APIS):
        number += len(checked(table))
        changed += changes(table)
    state = "missing" if changed else "ok"
    detail = f"{number - len(changed)} of {number} as expected"
    yield Finding("private APIs", state, detail)
    for change in changed:
        yield Finding("", state, str(change))


def _greet() -> None:
    import torch
    import torch.distributed as dist

    x = torch.ones(1)
    dist.all_reduce(x)


def _sandbox() -> Iterator[Finding]:
    """Start a sandbox, and two ranks in it."""
    from grader.sandbox.sandboxes import missing, new_sandbox
    from grader.submission.submission import Submission
    from headcount.core.errors import HeadcountError
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    reason = missing()
    if reason:
        yield Finding("sandbox", "missing", f"to grade a class: {reason}")
        return
    # the sandbox does not show this module, so its functions cannot be pickled by name
    greeting = Submission.from_bytes(inspect.getsource(_greet).encode(), "greet.py")
    try:
        with (
            contextlib.closing(new_sandbox()) as server,
            ProcessWorld(server, 2, greeting.program) as world,
        ):
            outcome = world.run(Job("_greet", ((), ()), allowed=None))
    except HeadcountError as error:
        yield Finding("sandbox", "missing", f"to grade a class: it does not start: {error}")
        return
    if outcome.failure is not None:
        yield Finding("sandbox", "missing", f"to grade a class: {outcome.failure.message}")
    else:
        yield Finding("sandbox", "ok", "bubblewrap and seccomp; two ranks ran in it")


def _compiler() -> Finding:
    from grader.sandbox.cpp_build import compiler, missing

    reason = missing()
    if reason:
        return Finding("C++ compiler", "missing", f"for VECTOR_ADD_CPP of chapter 18: {reason}")
    return Finding("C++ compiler", "ok", str(compiler()))


def _module(name: str, what: str, mend: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(what, "missing", f"for {mend}")
    from importlib.metadata import version

    return Finding(what, "ok", version(name))


def _command(names: str | tuple[str, ...], what: str, mend: str) -> Finding:
    for name in (names,) if isinstance(names, str) else names:
        path = shutil.which(name)
        if path:
            return Finding(what, "ok", path)
    return Finding(what, "missing", f"for {mend}" if sys.platform == "linux" else "not found")
