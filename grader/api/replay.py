"""``replay``: step through the messages of a program."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from grader.api.runs import Run, run_failed
from grader.api.session import catalogue, stoppable
from grader.api.written import written
from grader.exercise.cases import Case, demo, tags
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import listed
from grader.report.replay import description, player, replay_page, unpacked
from grader.report.rounds import FrameSequence, film
from grader.report.strip import still, strip
from grader.submission.submission import live_program
from headcount.core.errors import RequestError, RunFailed, is_ours
from headcount.core.notebook import shows_results
from headcount.core.resource_limits import valid_sizes
from headcount.core.source_locations import live_line, with_source
from headcount.core.values import MOST_RANKS, with_article
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.trace.trace import Trace

__all__ = ["Replay", "films_beside_solution", "replay"]

__tracebackhide__ = is_ours

#: Elements of the largest tensor whose contents are recorded.
WATCHED = 64


class Replay:
    """A run to step through: a player in a notebook, a table of its rounds elsewhere.

    Attributes:
        film: the rounds as data.
        reference: those of a right answer on the same data, shown where they differ.
        beside: those of another function, played on the same clock.
    """

    def __init__(
        self,
        film: FrameSequence,
        reference: FrameSequence | None = None,
        beside: FrameSequence | None = None,
    ) -> None:
        self.film = film
        self.reference = reference
        self.beside = beside

    def __repr__(self) -> str:
        return description(self.film, self.reference, self.beside)

    def _repr_html_(self) -> str:
        return player(self.film, self.reference, self.beside)

    @property
    def picture(self) -> str:
        """The rounds side by side, as SVG."""
        return strip(self.film)

    def save(self, path: str | Path) -> None:
        """Write a page that plays in any browser."""
        text = replay_page(self.film, self.reference, self.beside)
        Path(path).write_text(text, encoding="utf-8")

    def _ipython_display_(self) -> None:
        # Two outputs: front ends that cannot play the first still show the second.
        from IPython.display import publish_display_data

        publish: Any = publish_display_data
        films = [self.film] if self.beside is None else [self.film, self.beside]
        words = " and ".join(film.length for film in films)
        publish({"text/html": self._repr_html_(), "text/plain": repr(self)})
        publish({"text/html": still(*films), "text/plain": f"{words} as a picture"})


@written("replay(broadcast, 4)")
def replay(
    what: Callable[..., Any] | Run | Trace,
    world_size: int | None = None,
    *arguments: Any,
    beside: bool | Callable[..., Any] | Run | Trace = True,
) -> Replay:
    """Run a function on every rank and step through its messages.

    In a notebook it plays once by itself when it comes into sight.

    Args:
        what: a function.  The function of an exercise needs no arguments: it gets
            data that can be followed by name, and so does a function of one argument.  Or the value
            of :func:`run`, whose messages are shown without their contents.
        world_size: how many ranks, up to 16; not for a run, which has them.
        arguments: the same for every rank.
        beside: another function, or another run, that is played beside it on one clock and gets
            the same data, as in ``replay(flat, 8, beside=tree)``.  Without one, the function of an
            exercise on up to 8 ranks is compared with a recorded run of a right
            answer, which is shown beside it where the two differ; ``False`` leaves that out.  A
            recorded run holds what travels and what ranks hold, and no code.

    A run that hangs is shown up to where it stands still, with the ranks that wait.

    Raises:
        RequestError: there is nothing to run, or nothing to run it on.
        RunFailed: the run failed in another way than by hanging.
    """
    if isinstance(what, (Run, Trace)):
        if isinstance(beside, bool):
            return Replay(_film_of(what))
        if not isinstance(beside, (Run, Trace)):
            raise RequestError("beside a run stands another run, as in replay(one, beside=other)")
        films = _film_of(what), _film_of(beside)
        if films[0].ranks != films[1].ranks:
            raise RequestError(
                f"two runs are replayed on one clock if they have as many ranks, not"
                f" {films[0].ranks} and {films[1].ranks}"
            )
        return _shown(Replay(films[0], beside=films[1]))
    name = _name(what)
    other = None if isinstance(beside, bool) else beside
    if isinstance(other, (Run, Trace)):
        raise RequestError("beside a function stands another function, and not a run")
    if other is not None:
        _name(other)
    if world_size is None:
        raise RequestError(f"on how many ranks? Write replay({name}, 4)")
    if isinstance(world_size, int) and world_size > MOST_RANKS:
        raise RequestError(
            f"on {world_size} ranks there would be too much to see: a replay shows up to"
            f" {MOST_RANKS}, as in replay({name}, {MOST_RANKS})"
        )
    (size,) = valid_sizes([world_size])
    functions = [what] if other is None else [what, other]
    exercise, case = (None, None) if arguments else _example(functions, size)
    shown = [_filmed(function, size, exercise, case, arguments) for function in functions]
    if other is not None:
        return _shown(Replay(shown[0], beside=shown[1]))
    reference = _recorded(exercise, size) if exercise is not None and beside else None
    return _shown(Replay(shown[0], reference))


def _film_of(what: Run | Trace) -> FrameSequence:
    if isinstance(what, Run):
        return film(what.trace, "a run", tags=False, failure=what.failure)
    return film(what, "a run", tags=False)


def _name(function: Any) -> str:
    """Return the name of a function.

    Raises:
        RequestError: it is none.
    """
    name = getattr(function, "__name__", None)
    if not callable(function) or not isinstance(name, str):
        raise RequestError(
            f"replay takes a function or a run, not {with_article(type(function).__name__)}"
        )
    return name


def _example(
    functions: Sequence[Callable[..., Any]], size: int
) -> tuple[Exercise | None, Case | None]:
    """Return data that can be followed by name, and the exercise whose example they are.

    Where no function is that of an exercise, one that needs a single argument gets a tensor.

    Raises:
        RequestError: an exercise has no example, or two functions do not take the same arguments.
    """
    exercises = [catalogue().get(_name(function)) for function in functions]
    exercise = next((one for one in exercises if one is not None and one.demo is not None), None)
    needed = _needed(functions[0])
    if exercise is not None and exercise.demo is not None:
        case = exercise.demo(size)
    elif one := next((one for one in exercises if one is not None), None):
        raise RequestError(f"{one.name} has no example to replay; give it arguments of your own")
    elif len(needed) == 1:
        case = demo(size, **{needed[0]: tags(size, 1)})
    else:
        return None, None
    for function in functions if len(functions) > 1 else ():
        missing = [name for name in _needed(function) if name not in case.columns]
        if missing:
            raise RequestError(
                f"both functions get the same data, {listed(case.columns)}, but {_name(function)}"
                f" needs {listed(missing)} as well"
            )
    return exercise, case


def _needed(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function cannot do without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # such as a function that is written in C
        return []
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [of.name for of in parameters if of.kind in positional and of.default is of.empty]


def _recorded(exercise: Exercise, size: int) -> FrameSequence | None:
    """Return the recorded run of a right answer; None on a size that was not recorded."""
    path = resources.files("grader.course").joinpath("recorded").joinpath(f"{exercise.name}.json")
    if not path.is_file():
        return None
    runs = json.loads(path.read_text(encoding="utf-8"))
    return unpacked(runs[str(size)]) if str(size) in runs else None


def films_beside_solution(
    function: Callable[..., Any], size: int
) -> tuple[FrameSequence, FrameSequence] | None:
    """Return a function's rounds, run once more, and those of a right answer on the same data.

    Returns:
        None where the function's exercise has none to show, or the run fails.
    """
    exercise = catalogue().get(_name(function))
    reference = None if exercise is None else _recorded(exercise, size)
    if exercise is None or exercise.demo is None or reference is None:
        return None
    try:
        return _filmed(function, size, exercise, exercise.demo(size), ()), reference
    except RunFailed:
        return None


def _filmed(
    function: Callable[..., Any],
    size: int,
    exercise: Exercise | None,
    case: Case | None,
    arguments: tuple[Any, ...],
) -> FrameSequence:
    name = _name(function)
    names = _parameters(function)
    roots: dict[int, str] = {}
    columns = (arguments,) * size
    if case is not None:
        # the exercise's own function gets all, whatever it calls them
        own = exercise is not None and exercise.name == name
        names = [*case.columns] if own else [of for of in names if of in case.columns]
        given = [dict(zip(case.columns, case.arguments(rank), strict=True)) for rank in case.ranks]
        columns = tuple(tuple(of[name] for name in names) for of in given)
        roots = case.roots()
    judged = catalogue().get(name) if exercise is not None else None
    job = Job(
        name,
        columns,
        allowed=None if judged is None else judged.traffic.allowed,
        adapter=b"" if judged is None else judged.packed_adapter(),
        watched=WATCHED,
    )
    with stoppable() as launcher, ProcessWorld(launcher, size, live_program(function)) as world:
        outcome = world.run(job)
    if outcome.failure is not None and not outcome.failure.diagnosis.hangs:
        failure = with_source(outcome.failure, live_line)
        raise run_failed(failure)
    return film(outcome.trace, name, case is not None, names, roots, outcome.failure)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's arguments; none where it does not tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # such as a function that is written in C
        return []


def _shown(replay: Replay) -> Replay:
    if not shows_results():
        print(replay)
    return replay
