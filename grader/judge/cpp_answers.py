"""Answers that are C++ source: fetched from a rank, compiled, and loaded like any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.exercise.declaration import Exercise
from grader.sandbox.cpp_build import Built, CppSource, missing
from grader.sandbox.sandboxes import cpp_builder
from headcount.core.program import Program, is_stub, packed_by_value
from headcount.core.values import describe
from headcount.core.verdict import Diagnosis, Failure, Site
from headcount.launch.launchers import Launcher
from headcount.launch.world import Job, Outcome

__all__ = ["Preparation", "compiled"]

#: The marks around a solution, which the instructor's edition has inside the string.
_SOLUTION_MARKS = re.compile(r"^### (?:BEGIN|END) SOLUTION\n", re.M)


@dataclass(frozen=True)
class Preparation:
    """The result of compiling an answer.

    Attributes:
        program: what ranks load in its place; None if there is none.
        failure: why there is none, where that is the answer's fault.
        unavailable: why there is none, where this machine cannot make one.
    """

    program: Program | None = None
    failure: Failure | None = None
    unavailable: str = ""


def compiled(
    exercise: Exercise,
    run: Callable[[Job], Outcome],
    launcher: Launcher,
    size: int,
    seconds: float,
    until: float,
) -> Preparation:
    """Ask a rank for the text of an answer, and build the function that it holds.

    Args:
        exercise: the exercise, whose ``compiled`` names the function.
        run: runs a job in the answer's first world.
        launcher: starts the ranks; where they are in a sandbox, the compiler is, too.
        size: the size of that world.
        seconds: the time limit of its ranks.
        until: when the compiler must be done, on the monotonic clock.
    """
    job = Job(exercise.name, ((),) * size, adapter=packed_by_value(_unchanged), seconds=seconds)
    outcome = run(job)
    if outcome.failure is not None:
        return Preparation(failure=outcome.failure)
    text = outcome.results[0].value
    name = exercise.name
    if not isinstance(text, str):
        message = f"{name} is {describe(text)}; a str that holds C++ source is needed"
        return Preparation(failure=Failure(Diagnosis.WRONG_TYPE, message))
    if is_stub(text):
        return Preparation(failure=Failure(Diagnosis.NOT_ATTEMPTED, "not written yet"))
    unavailable = missing()
    if unavailable:
        return Preparation(unavailable=unavailable)
    source = CppSource(
        name, _SOLUTION_MARKS.sub("", text), exercise.function, len(exercise.parameters)
    )
    built = cpp_builder(launcher).build(source, until)
    if built.library:
        return Preparation(program=built.program(exercise.function))
    return Preparation(failure=_compile_failure(source, built))


def _unchanged(value: Any) -> Any:
    return value


def _compile_failure(source: CppSource, built: Built) -> Failure:
    if built.late:
        return Failure(Diagnosis.TIMEOUT, f"{source.name}: {built.complaint}")
    complaint = built.complaint[:500]
    if built.line is None:
        return Failure(Diagnosis.SYNTAX_ERROR, f"{source.name} does not compile: {complaint}")
    lines = source.text.splitlines()
    code = lines[built.line - 1].strip()[:200] if 0 < built.line <= len(lines) else ""
    quoted = f" ({code})" if code else ""
    site = Site(source.name, built.line)
    message = f"{source.name} does not compile, line {built.line} of the text{quoted}: {complaint}"
    return Failure(Diagnosis.SYNTAX_ERROR, message, None, site)
