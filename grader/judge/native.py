"""An answer that is C++ source: fetched from a rank, compiled, and then called like any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.core.values import describe
from grader.core.verdict import Diagnosis, Failure, Site
from grader.course.exercise import Exercise, packed
from grader.launch.cpp_build import Built, CppBuilder, CppSource, missing
from grader.launch.world import Job, Outcome

__all__ = ["Native", "build", "is_code"]

#: Comments of C++, includes, and the stub that a student finds; what is left is an answer.
_NOTHING = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|^\s*#\s*include[^\n]*|^\s*raise NotImplementedError\s*$",
    re.S | re.M,
)

#: The marks around a solution, which an instructor's edition has inside the quotes.
_MARKS = re.compile(r"^### (?:BEGIN|END) SOLUTION\n", re.M)


@dataclass(frozen=True)
class Native:
    """What became of the source.

    Attributes:
        library: to call the function in; empty if there is none.
        failure: why not, where that is the answer's fault.
        unavailable: why not, where nothing can be compiled on this machine.
    """

    library: str = ""
    failure: Failure | None = None
    unavailable: str = ""


def build(
    exercise: Exercise,
    run: Callable[[Job], Outcome],
    workshop: Callable[[], CppBuilder],
    size: int,
    seconds: float,
) -> Native:
    """Ask a rank for the text, and compile it.

    Args:
        exercise: whose ``compiled`` says what the text must define.
        run: runs a job in the answer's first world.
        workshop: gives the one that compiles for these ranks.
        size: of that world.
        seconds: that its ranks may take to tell it.
    """
    outcome = run(Job(exercise.name, ((),) * size, adapter=packed(_itself), seconds=seconds))
    if outcome.failure is not None:
        return Native(failure=outcome.failure)
    text = outcome.results[0].value
    name = exercise.name
    if not isinstance(text, str):
        told = f"{name} is {describe(text)}; a str that holds C++ source is needed"
        return Native(failure=Failure(Diagnosis.WRONG_TYPE, told))
    if not is_code(text):
        return Native(failure=Failure(Diagnosis.NOT_ATTEMPTED, "not written yet"))
    unavailable = missing()
    if unavailable:
        return Native(unavailable=unavailable)
    source = CppSource(name, _MARKS.sub("", text), exercise.function, len(exercise.parameters))
    built = workshop().build(source)
    if built.library:
        return Native(library=built.library)
    return Native(failure=_failure(source, built))


def is_code(text: str) -> bool:
    """Whether a text in C++ is more than comments, or the stub that a student finds."""
    return bool(_NOTHING.sub("", text).strip())


def _itself(value: Any) -> Any:
    return value


def _failure(source: CppSource, built: Built) -> Failure:
    if built.late:
        return Failure(Diagnosis.TIMEOUT, f"{source.name}: {built.complaint}")
    told = built.complaint[:500]
    if built.line is None:
        return Failure(Diagnosis.SYNTAX_ERROR, f"{source.name} does not compile: {told}")
    lines = source.text.splitlines()
    code = lines[built.line - 1].strip()[:200] if 0 < built.line <= len(lines) else ""
    quoted = f" ({code})" if code else ""
    site = Site(source.name, built.line)
    message = f"{source.name} does not compile, line {built.line} of the text{quoted}: {told}"
    return Failure(Diagnosis.SYNTAX_ERROR, message, None, site)
