"""Judges a function against the exercise of its name: ``check`` and ``points``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grader.api.guidance import how_to_get_more
from grader.api.replay import films_beside_solution
from grader.api.session import catalogue, fresh_seed, stoppable
from grader.api.written import written
from grader.course.progress import note, origin_of, working_folder
from grader.course.progress_report import place_in_course
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.judge.judge import Judge, Settings
from grader.report.html import exercise_html, points_html
from grader.report.live import LiveCount, Place
from grader.report.strip import verdict_strip
from grader.report.summary import CoursePlace
from grader.report.text import exercise_report
from grader.submission.submission import Submission
from headcount.core.errors import RequestError, is_ours
from headcount.core.notebook import is_kernel, shows_results
from headcount.core.program import Program
from headcount.core.resource_limits import valid_sizes
from headcount.core.semantics import Semantics, semantics_named
from headcount.core.verdict import Diagnosis
from headcount.launch.backends import entry_of
from headcount.report import plain

__all__ = [
    "Check",
    "Points",
    "check",
    "points",
]

__tracebackhide__ = is_ours


class _Output:
    """What is displayed in the place of the live count, if there was one."""

    _place: Place | None

    def _ipython_display_(self) -> None:
        place, self._place = self._place, None
        if place is None or not place.here:
            raise NotImplementedError  # then IPython displays the texts below as any value's
        place.show({"text/plain": repr(self), "text/html": self._repr_html_()})

    def _repr_html_(self) -> str:
        raise NotImplementedError


class Check(_Output):
    """The verdict of :func:`check`: true if the exercise passed.

    Attributes:
        verdict: the verdict as data.
    """

    def __init__(
        self,
        verdict: ExerciseVerdict,
        place: Place | None = None,
        course: CoursePlace | None = None,
        exercise: Exercise | None = None,
        strip: str = "",
    ) -> None:
        self.verdict = verdict
        self._place = place
        self._course = course
        self._exercise = exercise
        self._strip = strip

    def __bool__(self) -> bool:
        return self.verdict.passed

    def __repr__(self) -> str:
        more = "" if self._exercise is None else how_to_get_more(self._exercise)
        return plain(exercise_report(self.verdict, self._course, more))

    def _repr_html_(self) -> str:
        help = None if self._exercise is None else self._exercise.help
        return exercise_html(self.verdict, self._course, help=help, strip=self._strip)


#: By exercise, the program of the last check as usual, and its verdict.
last_judged: dict[str, tuple[Program, ExerciseVerdict]] = {}


@written("check(broadcast)")
def check(
    answer: Callable[..., Any] | None = None,
    *,
    seed: int | None = None,
    world_sizes: Iterable[int] | None = None,
    backend: str = "gloo",
    seconds: float | None = None,
    semantics: str = "gloo",
    **named: Any,
) -> Check:
    """Judge a function against the exercise of its name.

    In a notebook, let a cell end with the call to see the verdict.  In a
    script the verdict is printed.

    Args:
        answer: the function or class; its name says which exercise it is.
        seed: repeats the inputs of an earlier check; fresh ones otherwise.
        world_sizes: numbers of ranks to judge at, instead of all.
        backend: what carries the messages: ``gloo``, ``mpi`` or ``nccl``, see
            :func:`grader.backends`.
        seconds: how long a rank may compute, or all may sleep, in one call; as long as the
            backend says if it is not given.
        semantics: ``nccl`` fails an answer that could hang or fail on NCCL, although its run ends
            well; see ``headcount/docs/nccl.md``.
        named: instead of ``answer``, one that has no name of its own, such as a
            text: ``check(VECTOR_ADD_CPP=VECTOR_ADD_CPP)``.

    Raises:
        UnknownExercise: no exercise has this name.
        RequestError: the answer is no function, or cannot be sent to other
            processes; or the backend is not to be had here; or there are no such semantics.
    """
    rules = semantics_named(semantics)
    name, value = _answer(answer, named)
    exercise = catalogue()[name]
    sizes = None if world_sizes is None else valid_sizes(world_sizes)
    settings = Settings(
        fresh_seed() if seed is None else seed,
        sizes,
        seconds=entry_of(backend).call_seconds if seconds is None else _valid_time_limit(seconds),
        backend=backend,
        semantics=rules,
    )
    submission = Submission.from_function(value, name)
    with LiveCount(name) as count, stoppable() as launcher:
        verdict = Judge(launcher, settings).judge(exercise, submission, count)
    usual = rules is Semantics.GLOO
    origin = origin_of(value)
    progress = note([verdict], catalogue(), origin, sizes, backend) if usual else None
    course = place_in_course(progress, name, working_folder()) if progress else None
    if sizes is None and seconds is None and backend == "gloo" and usual:
        last_judged[name] = submission.program, verdict
    strip = _strip(value, verdict) if is_kernel() else ""
    result = Check(verdict, count.place, course, exercise, strip)
    if not shows_results():
        print(result)
    return result


#: World sizes that are filmed, and the largest of them.
_FILMED, _LARGEST_FILMED = 2, 4


def _strip(answer: Any, verdict: ExerciseVerdict) -> str:
    """Return a picture of where an answer with wrong values goes wrong; empty without one.

    It is run once more for that, on the smallest worlds that fail, with data that has names.
    """
    if verdict.diagnosis is not Diagnosis.WRONG_VALUE or not callable(answer):
        return ""
    sizes = {case.world_size for case in verdict.cases if case.diagnosis is verdict.diagnosis}
    for size in sorted(sizes)[:_FILMED]:
        films = films_beside_solution(answer, size) if size <= _LARGEST_FILMED else None
        if films is not None and (strip := verdict_strip(*films)):
            return strip
    return ""


def _valid_time_limit(seconds: float) -> float:
    """Return a time limit in seconds as it was given.

    Raises:
        RequestError: it is no number of seconds above 0.
    """
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 < seconds < math.inf:
        raise RequestError(f"seconds is a number above 0, not {seconds!r}")
    return seconds


def _answer(answer: Any, named: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name of what is to be judged, and the function, class or text itself.

    Raises:
        RequestError: it is none of these, or there are several.
    """
    if named:
        if answer is not None or len(named) > 1:
            raise RequestError("check takes one answer at a time")
        return next(iter(named.items()))
    name = getattr(answer, "__name__", None)
    if not callable(answer) or not isinstance(name, str):
        text = "; for a text, say which exercise it answers: check(VECTOR_ADD_CPP=VECTOR_ADD_CPP)"
        raise RequestError(
            "check takes the function itself, as in check(broadcast), not a"
            f" {type(answer).__name__}{text if isinstance(answer, str) else ''}"
        )
    return name, answer


class Points(_Output):
    """The value of :func:`points`: a number for programs, the verdict for people.

    Attributes:
        verdict: the verdict as data.
    """

    def __init__(
        self, verdict: ExerciseVerdict, place: Place | None = None, seen: bool = False
    ) -> None:
        self.verdict = verdict
        self._place = place
        self._seen = seen

    @property
    def known(self) -> bool:
        """Whether the answer could be judged."""
        return self.verdict.status in (Status.PASSED, Status.FAILED)

    def __float__(self) -> float:
        if not self.known:
            raise ValueError(f"{self.verdict.name} could not be judged: {self.verdict.message}")
        return float(self.verdict.score)

    def __repr__(self) -> str:
        # nbgrader takes a number as partial credit, any other text as full marks
        # and an error as none.  It refuses empty text, so that an answer that could
        # not be judged stops the autograding of this submission.
        return str(float(self)) if self.known else ""

    def _repr_html_(self) -> str:
        brief = self._seen or self.verdict.passed
        return points_html(self.verdict) if brief else exercise_html(self.verdict)


def points(answer: Callable[..., Any] | None = None, **named: Any) -> Points:
    """Judge a function as :func:`check` does; the value is what it earns.

    The last cells of a chapter call it, and nbgrader reads the number.  A function that
    :func:`check` has judged as it is now is not judged again: its points are shown in a line, and
    so is a pass.  Any other verdict is shown whole.

    Args:
        answer: the function or class; its name says which exercise it is.
        named: an answer without a name of its own, as for ``check``.

    Raises:
        UnknownExercise: no exercise has this name.
        RequestError: the answer is no function, or cannot be sent to other
            processes.
    """
    name, value = _answer(answer, named)
    catalogue()[name]  # raises where there is none
    program, verdict = last_judged.get(name, (None, None))
    if verdict is not None and program == Submission.from_function(value, name).program:
        return Points(verdict, seen=True)
    checked = check(answer, **named)
    return Points(checked.verdict, checked._place)
