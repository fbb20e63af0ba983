"""``replay``: step through the messages of a program."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from grader.api.runs import Run, run_failed
from grader.api.session import catalogue, stoppable
from grader.core.errors import RequestError, is_ours
from grader.core.notebook import shows_results
from grader.core.resource_limits import valid_sizes
from grader.core.source_locations import live_line, with_source
from grader.core.values import MOST_RANKS, with_article
from grader.exercise.declaration import Exercise
from grader.launch.process_world import ProcessWorld
from grader.launch.world import Job
from grader.report.replay import (
    FrameSequence,
    description,
    film,
    page,
    player,
    still,
    strip,
    unpacked,
)
from grader.submission.submission import live_program
from grader.trace.trace import Trace

__all__ = ["Replay", "replay"]

__tracebackhide__ = is_ours

#: Elements of the largest tensor whose contents are recorded.
WATCHED = 64


class Replay:
    """A run to step through: a player in a notebook, a table of its rounds elsewhere.

    Attributes:
        film: the rounds as data.
        reference: those of a right answer on the same data, if one is to be shown beside it.
    """

    def __init__(self, film: FrameSequence, reference: FrameSequence | None = None) -> None:
        self.film = film
        self.reference = reference

    def __repr__(self) -> str:
        return description(self.film, self.reference)

    def _repr_html_(self) -> str:
        return player(self.film, self.reference)

    @property
    def picture(self) -> str:
        """The rounds side by side, as SVG."""
        return strip(self.film)

    def save(self, path: str | Path) -> None:
        """Write a page that plays in any browser."""
        Path(path).write_text(page(self.film, self.reference), encoding="utf-8")

    def _ipython_display_(self) -> None:
        # Two outputs: front ends that cannot play the first still show the second.
        from IPython.display import publish_display_data

        publish: Any = publish_display_data
        publish({"text/html": self._repr_html_(), "text/plain": repr(self)})
        publish({"text/html": still(self.film), "text/plain": f"{_rounds(self.film)} as a picture"})


def _rounds(film: FrameSequence) -> str:
    return "1 round" if film.rounds == 1 else f"{film.rounds} rounds"


def replay(
    what: Callable[..., Any] | Run | Trace,
    world_size: int | None = None,
    *arguments: Any,
    beside: bool = True,
) -> Replay:
    """Run a function on every rank and step through its messages.

    Args:
        what: a function.  The function of an exercise needs no arguments: it gets
            data that can be followed by name.  Or the value of :func:`run`, whose
            messages are shown without their contents.
        world_size: how many ranks, up to 8; not for a run, which has them.
        arguments: the same for every rank.
        beside: whether the function of an exercise is compared with a recorded run of a right
            answer, and shown beside it where the two differ.  A recorded run holds what
            travels and what ranks hold, and no code.

    A run that hangs is shown up to where it stands still, with the ranks that wait.

    Raises:
        RequestError: there is nothing to run, or nothing to run it on.
        RunFailed: the run failed in another way than by hanging.
    """
    if isinstance(what, Run):
        return Replay(film(what.trace, "a run", tags=False, failure=what.failure))
    if isinstance(what, Trace):
        return Replay(film(what, "a run", tags=False))
    name = getattr(what, "__name__", None)
    if not callable(what) or not isinstance(name, str):
        raise RequestError(
            f"replay takes a function or a run, not {with_article(type(what).__name__)}"
        )
    if world_size is None:
        raise RequestError(f"on how many ranks? Write replay({name}, 4)")
    (size,) = valid_sizes([world_size])
    exercise = catalogue().get(name) if not arguments else None
    if exercise is not None and exercise.demo is None:
        raise RequestError(f"{name} has no example to replay; give it arguments of your own")
    if size > MOST_RANKS:
        raise RequestError(f"a replay has up to {MOST_RANKS} ranks, not {size}")
    reference = _recorded(exercise, size) if exercise is not None and beside else None
    return _shown(Replay(_filmed(what, name, size, exercise, arguments), reference))


def _recorded(exercise: Exercise, size: int) -> FrameSequence | None:
    """Return the recorded run of a right answer; None on a size that was not recorded."""
    path = resources.files("grader.course").joinpath("recorded").joinpath(f"{exercise.name}.json")
    if not path.is_file():
        return None
    runs = json.loads(path.read_text(encoding="utf-8"))
    return unpacked(runs[str(size)]) if str(size) in runs else None


def _filmed(
    function: Callable[..., Any],
    name: str,
    size: int,
    exercise: Exercise | None,
    arguments: tuple[Any, ...],
) -> FrameSequence:
    roots: dict[int, str] = {}
    if exercise is not None:
        assert exercise.demo is not None
        case = exercise.demo(size)
        columns = tuple(case.arguments(rank) for rank in case.ranks)
        allowed, adapter = exercise.traffic.allowed, exercise.packed_adapter()
        names = list(case.columns)
        roots = case.roots()
    else:
        columns, allowed, adapter = (arguments,) * size, None, b""
        names = _parameters(function)
    job = Job(name, columns, allowed=allowed, adapter=adapter, watched=WATCHED)
    with stoppable() as launcher, ProcessWorld(launcher, size, live_program(function)) as world:
        outcome = world.run(job)
    if outcome.failure is not None and not outcome.failure.diagnosis.hangs:
        failure = with_source(outcome.failure, live_line)
        raise run_failed(failure)
    return film(outcome.trace, name, exercise is not None, names, roots, outcome.failure)


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
