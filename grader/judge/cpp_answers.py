"""Answers that are C++ source: fetched from a rank, compiled, and called like any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from grader.core.program import is_stub, packed_by_value
from grader.core.values import describe
from grader.core.verdict import Diagnosis, Failure, Site
from grader.exercise.declaration import Exercise
from grader.judge.answer_kinds import Preparation
from grader.launch.cpp_build import Built, CppSource, missing
from grader.launch.launchers import Launcher
from grader.launch.world import Job, Outcome

__all__ = ["CppAnswers"]

#: The marks around a solution, which the instructor's edition has inside the string.
_SOLUTION_MARKS = re.compile(r"^### (?:BEGIN|END) SOLUTION\n", re.M)


class CppAnswers:
    """Answers that are the text of a function in C++, which ``Exercise.compiled`` names."""

    def covers(self, exercise: Exercise) -> bool:
        """Return whether the answers to an exercise are C++ source."""
        return bool(exercise.compiled)

    def prepare(
        self,
        exercise: Exercise,
        run: Callable[[Job], Outcome],
        launcher: Launcher,
        size: int,
        seconds: float,
    ) -> Preparation:
        """Ask a rank for the text, and build it.

        Arguments are those of :class:`grader.judge.answer_kinds.AnswerKind`.
        """
        job = Job(exercise.name, ((),) * size, adapter=packed_by_value(_itself), seconds=seconds)
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
        built = launcher.cpp_builder().build(source)
        if built.library:
            return Preparation(library=built.library)
        return Preparation(failure=_compile_failure(source, built))


def _itself(value: Any) -> Any:
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
