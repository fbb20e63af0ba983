"""A function on a fresh world, and the lines that its report names."""

from __future__ import annotations

import inspect
import marshal
from collections.abc import Callable
from typing import Any

from headcount.core.packing import live_program
from headcount.core.program import Program, Unit
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job, Outcome


def play(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    allowed: frozenset[str] | None = frozenset(),
    strict: bool = True,
    seconds: float = 10.0,
    backend: str = "gloo",
    **limits: Any,
) -> Outcome:
    """Run a function on a fresh world, as a run does."""
    launcher = default_launcher()
    job = Job(
        "answer", (arguments,) * size, allowed=allowed, strict=strict, seconds=seconds, **limits
    )
    try:
        with ProcessWorld(launcher, size, live_program(function), backend=backend) as world:
            return world.run(job)
    finally:
        launcher.settle()


def program_of(source: str, *names: str, file: str = "answer.py") -> Program:
    """Return the program of a file that defines these names."""
    code = marshal.dumps(compile(source, file, "exec"))
    return Program(units=[Unit(file, 1, list(names), code)], label=file)


def line_in(function: Callable[..., Any], text: str) -> int:
    """The line number of the one line of a function that holds ``text``."""
    lines, first = inspect.getsourcelines(function)
    found = [first + i for i, line in enumerate(lines) if text in line]
    assert len(found) == 1, f"{text!r} is on lines {found}"
    return found[0]
