"""The functions that a student calls from a notebook cell or a script."""

from __future__ import annotations

import contextlib
import math
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, overload

from grader.core.errors import RequestError, RunFailed, Stopped, is_ours
from grader.core.outline import about_hash_seeds, outline_live
from grader.core.resource_limits import DEFAULTS, valid_sizes
from grader.core.source_locations import live_line, with_source
from grader.core.values import show, with_article
from grader.core.verdict import ArrivalOrders, ExerciseVerdict, Failure, Status
from grader.course.chapters import discover
from grader.course.help import help_of
from grader.course.index import course_index
from grader.exercise.cases import Kill
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.judge.judge import Judge, Settings
from grader.judge.progress import CourseProgress, note, origin_of, overview, working_folder
from grader.launch.backends import entry_of
from grader.launch.launchers import Launcher, default_launcher, discard_launcher
from grader.launch.process_world import ProcessWorld
from grader.launch.simulation import Simulation
from grader.launch.world import Job, Outcome, RankResult, omission
from grader.report.changes import (
    ChangedArgument,
    changed_arguments,
    nothing_returned,
    traffic_words,
)
from grader.report.html import (
    exercise_html,
    failure_html,
    hints_html,
    prediction_html,
    progress_html,
    run_html,
)
from grader.report.live import LiveCount, Place
from grader.report.summary import CoursePlace, failure_text, in_words, place_in_course
from grader.report.text import (
    exercise_report,
    failure_report,
    hints_report,
    plain,
    progress_report,
    run_report,
)
from grader.submission.submission import Submission, live_program
from grader.trace.trace import Trace
from grader.trace.wildcard_schedules import Exploration, WildcardPolicy, named_race

__all__ = [
    "Checked",
    "Begun",
    "Hints",
    "Points",
    "Prediction",
    "Progress",
    "Run",
    "catalogue",
    "check",
    "fresh_seed",
    "hint",
    "points",
    "predict",
    "progress",
    "reset",
    "run",
]

__tracebackhide__ = is_ours

#: Orders of arrival that :func:`run` tries, and seconds for those after the first.
_ORDERS, _EXPLORING = 8, 1.0

_Ran = TypeVar("_Ran", Outcome, Simulation)

_catalogue: Catalogue[Exercise] | None = None
_hints_given: dict[str, int] = {}


def catalogue() -> Catalogue[Exercise]:
    """Return the exercises of the course."""
    global _catalogue
    if _catalogue is None:
        _catalogue = discover()
    return _catalogue


def fresh_seed() -> int:
    """Return an unpredictable seed that is short enough to type again."""
    return secrets.randbelow(10**6)


class _Displayed:
    """What is displayed in the place of the live count, if there was one."""

    _place: Place | None

    def _ipython_display_(self) -> None:
        place, self._place = self._place, None
        if place is None or not place.here:
            raise NotImplementedError  # then IPython displays the texts below as any value's
        place.show({"text/plain": repr(self), "text/html": self._repr_html_()})

    def _repr_html_(self) -> str:
        raise NotImplementedError


class Checked(_Displayed):
    """The verdict of :func:`check`: true if the exercise passed.

    Attributes:
        verdict: the verdict as data.
    """

    def __init__(
        self,
        verdict: ExerciseVerdict,
        place: Place | None = None,
        course: CoursePlace | None = None,
    ) -> None:
        self.verdict = verdict
        self._place = place
        self._course = course

    def __bool__(self) -> bool:
        return self.verdict.passed

    def __repr__(self) -> str:
        return plain(exercise_report(self.verdict, self._course))

    def _repr_html_(self) -> str:
        return exercise_html(self.verdict, self._course)


def check(
    answer: Callable[..., Any] | None = None,
    *,
    seed: int | None = None,
    world_sizes: Iterable[int] | None = None,
    backend: str = "gloo",
    seconds: float | None = None,
    **named: Any,
) -> Checked:
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
        named: instead of ``answer``, one that has no name of its own, such as a
            text: ``check(VECTOR_ADD_CPP=VECTOR_ADD_CPP)``.

    Raises:
        UnknownExercise: no exercise has this name.
        RequestError: the answer is no function, or cannot be sent to other
            processes; or the backend is not to be had here.
    """
    name, value = _answer(answer, named)
    exercise = catalogue()[name]
    sizes = None if world_sizes is None else valid_sizes(world_sizes)
    settings = Settings(
        fresh_seed() if seed is None else seed,
        sizes,
        seconds=entry_of(backend).call_seconds if seconds is None else _positive(seconds),
        backend=backend,
    )
    submission = Submission.from_function(value, name)
    with LiveCount(name) as count, stoppable() as launcher:
        verdict = Judge(launcher, settings).judge(exercise, submission, count)
    progress = note([verdict], catalogue(), origin_of(value), sizes, backend)
    course = place_in_course(progress, name, working_folder()) if progress else None
    checked = Checked(verdict, count.place, course)
    if not shows_results():
        print(checked)
    return checked


def _positive(seconds: float) -> float:
    """Return a time limit.

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


@contextlib.contextmanager
def stoppable() -> Iterator[Launcher]:
    """Give this process's launcher, and end its worlds afterwards, also on an interrupt.

    Raises:
        Stopped: the user has interrupted the work.
    """
    _recall_prediction()  # whatever a learner starts passes here
    launcher = default_launcher()
    try:
        yield launcher
        launcher.settle()
    except KeyboardInterrupt:
        # a message may have been cut off in the middle, so the launcher cannot be used again
        launcher.close()
        discard_launcher()
        raise Stopped("every rank has been ended") from None


def shows_results() -> bool:
    """Return whether values of expressions are shown without a print, as in a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        return True
    return hasattr(sys, "ps1")


class Points(_Displayed):
    """The value of :func:`points`: a number for programs, the verdict for people.

    Attributes:
        verdict: the verdict as data.
    """

    def __init__(self, verdict: ExerciseVerdict, place: Place | None = None) -> None:
        self.verdict = verdict
        self._place = place

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
        return exercise_html(self.verdict)


def points(answer: Callable[..., Any] | None = None, **named: Any) -> Points:
    """Judge a function as :func:`check` does; the value is what it earns.

    The last cells of a chapter call it.  A learner sees the verdict there,
    whatever it is, and nbgrader reads the number.

    Args:
        answer: the function or class; its name says which exercise it is.
        named: an answer without a name of its own, as for ``check``.

    Raises:
        UnknownExercise: no exercise has this name.
        RequestError: the answer is no function, or cannot be sent to other
            processes.
    """
    checked = check(answer, **named)
    return Points(checked.verdict, checked._place)


class Hints:
    """Hints on an exercise, the gentlest first, as far as they have been asked for.

    Attributes:
        name: the exercise.
        hints: those that are shown.
        of: how many there are.
        warns: whether the next hint is the last, and the whole answer.
    """

    def __init__(self, name: str, hints: Sequence[str], of: int, warns: bool = False) -> None:
        self.name = name
        self.hints = tuple(hints)
        self.of = of
        self.warns = warns

    @property
    def _more(self) -> str:
        """How to see the next hint; backticks mark code."""
        left = self.of - len(self.hints)
        call = f'hint("{self.name}")'
        if self.warns:
            return f"The next hint is the whole answer. To see it, call `{call}` again."
        return f"{left} more: for the next hint, call `{call}` again." if left else ""

    def __repr__(self) -> str:
        return plain(hints_report(self.hints, self._more.replace("`", "")))

    def _repr_html_(self) -> str:
        return hints_html(self.name, self.hints, self._more)


def hint(name: str | Callable[..., Any]) -> Hints:
    """Return the next hint on an exercise, from gentle to plain.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = course_index()[name if isinstance(name, str) else name.__name__]
    known = help_of(exercise.chapter)[exercise.name]
    of = len(known.hints)
    given = min(_hints_given.get(exercise.name, 0) + 1, of)
    _hints_given[exercise.name] = given
    hints = Hints(exercise.name, known.hints[:given], of, known.tells_all and given == of - 1)
    if not shows_results():
        print(hints)
    return hints


class Prediction:
    """What a learner expects of the next run; the value of :func:`predict`.

    Attributes:
        text: what they wrote; empty if nothing yet.
        seen: whether the run is here, beside which it is shown.
    """

    def __init__(self, text: str, seen: bool = False) -> None:
        self.text = text
        self.seen = seen

    def _parts(self) -> tuple[str, str]:
        if self.seen:
            return "You predicted:", self.text
        if self.text:
            return "Your prediction is kept.", "Now run the next cell and compare."
        return "No prediction yet.", "Write what you expect between the quotes, and run this cell."

    def __repr__(self) -> str:
        return " ".join(self._parts())

    def _repr_html_(self) -> str:
        return prediction_html(*self._parts())


#: The last prediction, until a run has shown it.
_predictions: list[Prediction] = []


def predict(text: str) -> Prediction:
    """Keep what you expect to see, and show it above the output of the next run.

    The next :func:`run`, :func:`check`, ``replay`` or ``simulate`` shows it, once.  It is kept by
    this kernel alone, and judged by no one.

    Raises:
        RequestError: the prediction is no text.
    """
    if not isinstance(text, str):
        raise RequestError(
            f'predict takes a text, as in predict("everyone has 7"), not'
            f" {with_article(type(text).__name__)}"
        )
    prediction = Prediction(text.strip())
    _predictions[:] = [prediction] if prediction.text else []
    if not shows_results():
        print(prediction)
    return prediction


def _recall_prediction() -> None:
    """Show the prediction that has waited for a run, if there is one."""
    if not _predictions:
        return
    prediction = Prediction(_predictions.pop().text, seen=True)
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(prediction)
    else:
        print(prediction)


class Begun:
    """An exercise that begins again; the value of :func:`reset`.

    Attributes:
        name: the exercise.
        stub: the text of the cell that a student begins with.
        placed: whether the front end was asked for a new cell with it.
    """

    def __init__(self, name: str, stub: str, placed: bool) -> None:
        self.name = name
        self.stub = stub
        self.placed = placed

    def __repr__(self) -> str:
        if not self.placed:
            return self.stub
        return (
            f"The stub of {self.name} is in a new cell below. Your own cell is as it was; the one"
            " further down counts."
        )


def reset(name: str | Callable[..., Any]) -> Begun:
    """Begin an exercise again: put its stub into a new cell below this one.

    Your own cell stays as it is.  Outside of a notebook the stub is printed;
    ``python -m grader reset NOTEBOOK EXERCISE`` changes a file.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = course_index()[name if isinstance(name, str) else name.__name__]
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # in a terminal it would be typed for the user, line by line
    is_kernel = getattr(shell, "kernel", None) is not None
    if shell is not None and is_kernel:
        shell.set_next_input(exercise.stub)
    begun = Begun(exercise.name, exercise.stub, is_kernel)
    if not shows_results():
        print(begun)
    return begun


class Progress:
    """A learner's progress in the course; the value of :func:`progress`.

    Attributes:
        overview: the same as data.
    """

    def __init__(self, overview: CourseProgress) -> None:
        self.overview = overview

    def __repr__(self) -> str:
        return plain(progress_report(self.overview))

    def _repr_html_(self) -> str:
        return progress_html(self.overview)


def progress() -> Progress:
    """Return which exercises of the course are passed, tried or untouched.

    Every :func:`check` of your own functions counts, in notebooks and on the
    command line.  Progress is kept in ``.grader/progress.json`` of the course; delete
    the file to begin anew.
    """
    found = Progress(overview(course_index()))
    if not shows_results():
        print(found)
    return found


class _FailureCard:
    """Why a run failed, as it is shown."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __repr__(self) -> str:
        return plain(failure_report(self._failure))

    def _repr_html_(self) -> str:
        return failure_html(self._failure)

    def show(self) -> str:
        """Show it in the cell that runs, and return what is left to say; nothing elsewhere."""
        ipython = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        if ipython is None or getattr(shell, "kernel", None) is None:
            return ""  # a terminal shows no more than text, once
        ipython.display.display(self)
        return f"{in_words(self._failure.diagnosis)}, as shown above"


def run_failed(failure: Failure) -> RunFailed:
    """Return the exception for a failed run, which a notebook shows as a card."""
    return RunFailed(failure_text(failure), failure, _FailureCard(failure).show)


class Run(Sequence[Any]):
    """The value of :func:`run`: the results in rank order, and the record of the run.

    It is shown as what the ranks returned; where that is nothing, as what became of the function's
    arguments.  What was sent is below it.

    Attributes:
        output: what each rank printed.
        failure: why the run failed, or ``None``.
        orders: how many orders of arrival were tried, of how many that are known;
            ``None`` if there is only one.
        killed: the rank that was killed on request, if one was; its result is ``None``.
        seed: the seed of the ranks' random numbers, of which each rank draws its own.
    """

    def __init__(
        self,
        results: Sequence[RankResult],
        trace: Trace,
        output: Sequence[str],
        failure: Failure | None,
        orders: ArrivalOrders | None = None,
        killed: int | None = None,
        seed: int | None = None,
        arguments: int = 0,
    ) -> None:
        self._ranks = tuple(results)
        self._results = tuple(result.value for result in results)
        self._arguments = arguments
        self._trace = trace
        self.output = tuple(output)
        self.failure = None if failure is None else with_source(failure, live_line)
        self.orders = orders
        self.killed = killed
        self.seed = seed

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        self._require_success()
        return self._results[index]

    def __len__(self) -> int:
        self._require_success()
        return len(self._results)

    def __iter__(self) -> Iterator[Any]:
        self._require_success()
        return iter(self._results)

    @property
    def trace(self) -> Trace:
        """The record of every message, see :class:`grader.trace.trace.Trace`."""
        return self._trace

    def _require_success(self) -> None:
        if self.failure is not None:
            raise run_failed(self.failure)

    @cached_property
    def _parts(self) -> tuple[str, list[ChangedArgument], str]:
        """A run that returned nothing, in the parts that are shown."""
        changed, sent = changed_arguments(self._ranks), traffic_words(self._trace)
        return nothing_returned(self._ranks, self._arguments, changed, sent), changed, sent

    def __repr__(self) -> str:
        if self.failure is not None:
            return repr(_FailureCard(self.failure))
        if self._is_empty:
            return plain(run_report(*self._parts))
        lines = [
            f"rank {rank}: {'killed' if rank == self.killed else show(v, 160)}"
            for rank, v in enumerate(self._results)
        ]
        # what others still sent to a rank that was killed differs from run to run
        sent = traffic_words(self._trace) if self.killed is None else ""
        return "\n".join([*lines, sent] if sent else lines)

    @property
    def _is_empty(self) -> bool:
        """Whether no rank returned anything, as functions do that work in place."""
        return self.killed is None and all(value is None for value in self._results)

    def _repr_html_(self) -> str | None:
        if self.failure is not None:
            return _FailureCard(self.failure)._repr_html_()
        # plain text needs no card
        return run_html(*self._parts) if self._is_empty and self._parts[1] else None


def run(
    function: Callable[..., Any],
    world_size: int,
    *arguments: Any,
    seconds: float = DEFAULTS.run,
    may_fail: bool = False,
    backend: str = "gloo",
    kill: tuple[int, int] | None = None,
    seed: int | None = None,
) -> Run:
    """Run a function on every rank of a fresh world of processes.

    The process group is set up: inside, ``dist.get_rank()`` and everything
    else of ``torch.distributed`` works, on gloo unless you say otherwise.
    What ranks print is shown in rank order when all have ended, and warnings after it.
    Displayed, the value is what the ranks returned; where that is nothing, what became of the
    arguments, since the function may have worked in place; and below it what was sent.

    When no other operation can proceed, a receive from any rank takes the message of the
    highest rank that has sent one, so that a run gives the same result every time.  Where
    it could have taken another rank's message, a few further runs try that silently; if
    one of them fails, that run is shown, and the message names the receive that decides.

    Args:
        function: called as ``function(*arguments)`` on every rank.
        world_size: how many ranks.
        arguments: the same for every rank.
        seconds: wall clock after which the run has failed.
        may_fail: return a failed run instead of raising; for functions that
            are meant to go wrong.
        backend: what carries the messages: ``gloo``, ``mpi`` or ``nccl``, see
            :func:`grader.backends`.
        kill: a rank to kill, and the step at which it dies: 0 as it enters the function, and
            after that one for each operation that it begins, for each that is complete, and for
            each entry that it puts into the store; as it returns, if it makes fewer steps. On
            gloo only.
        seed: repeats the random numbers of an earlier run; fresh ones otherwise. Each rank
            draws its own, as processes do that ``torchrun`` starts.

    Raises:
        RunFailed: a rank raised, died, hung or broke a rule of communication.  A notebook shows
            the same card for it as for a failed run that is returned.
        RequestError: the function cannot be sent to other processes; or the
            backend is not to be had here; or there is no rank to kill.
    """
    (size,) = valid_sizes([world_size])
    killed = None if kill is None else _to_kill(kill, size, backend)
    name = getattr(function, "__name__", "function")
    program = live_program(function, *arguments)
    follows = bool(arguments)
    job = Job(name, ((),) * size, allowed=None, seconds=seconds, killed=killed, follows=follows)
    drawn = fresh_seed() if seed is None else seed
    with stoppable() as launcher:

        def run_once(policy: WildcardPolicy | None, hashing: bool = program.hashes) -> Outcome:
            with ProcessWorld(
                launcher, size, program, backend=backend, seed=drawn, hashing=hashing
            ) as world:
                return world.run(job if policy is None else replace(job, policy=policy))

        outcome, orders = in_all_orders(run_once, lambda outcome: outcome.trace)
        failure = outcome.failure
        if program.hashes and failure and run_once(None, hashing=False).failure is None:
            message = f"{failure.message}\n{about_hash_seeds(outline_live(function))}"
            outcome = replace(outcome, failure=replace(failure, message=message))
    for rank, text in enumerate(outcome.output):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")
    for warning in outcome.trace.warnings:
        print(f"warning: {warning}")
    if seed is None and any(result.drew for result in outcome.results):
        print(note_on_seed(drawn))
    failure = outcome.failure or omission(outcome.results, job.answer_limit)
    dead = None if killed is None else killed.rank
    finished = Run(
        outcome.results,
        outcome.trace,
        outcome.output,
        failure,
        orders,
        dead,
        drawn,
        len(arguments),
    )
    if not may_fail:
        finished._require_success()
    return finished


def note_on_seed(seed: int) -> str:
    """Return how to repeat a run whose ranks have drawn random numbers without a seed."""
    return f"every rank drew random numbers of its own; seed={seed} repeats them"


def _to_kill(kill: tuple[int, int], size: int, backend: str) -> Kill:
    """Return a request to kill a rank, checked.

    Raises:
        RequestError: it names no rank and step, or a backend that does not survive it.
    """
    if not entry_of(backend).survives:
        raise RequestError(f"where a rank is killed on {entry_of(backend).title}, all others end")
    if not (isinstance(kill, tuple) and len(kill) == 2 and all(type(one) is int for one in kill)):
        raise RequestError(f"kill takes a rank and a step, as in kill=(2, 0), not {kill!r}")
    rank, step = kill
    if not 0 <= rank < size or step < 0:
        raise RequestError(f"kill={kill!r}: the ranks are 0 to {size - 1}, and steps count from 0")
    return Kill(rank, step)


def in_all_orders(
    run_once: Callable[[WildcardPolicy | None], _Ran], record_of: Callable[[_Ran], Trace]
) -> tuple[_Ran, ArrivalOrders | None]:
    """Run a program; where a receive has a choice, run it in other orders as well.

    Args:
        run_once: runs it, by a policy or as usual.
        record_of: returns the record of a run.

    Returns:
        The first run, or that of the first order that fails, with the race named.
    """
    began = time.monotonic()
    first = run_once(None)
    if not record_of(first).choices:
        return first, None
    # a run that takes long is not repeated
    exploration = Exploration(_ORDERS, _EXPLORING - (time.monotonic() - began))
    exploration.add(record_of(first))
    right, wrong = ([], [first]) if first.failure else ([first], [])
    while not (right and wrong) and (policy := exploration.next()) is not None:
        again = run_once(policy)
        exploration.add(record_of(again))
        (wrong if again.failure else right).append(again)
    orders = exploration.orders
    if not wrong:
        return first, orders if orders.known > 1 else None
    (ran, *_), failure = wrong, wrong[0].failure
    assert failure is not None
    race = named_race(record_of(ran), [record_of(one) for one in right], orders)
    named = replace(failure, message=f"{failure.message}{race}")
    return replace(ran, failure=named), orders
