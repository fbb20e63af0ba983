"""Judge a .py file or a notebook."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.options import add_json, add_seconds, add_seed
from grader.cli.process import show, stop_if_pressed
from headcount.core.errors import RequestError
from headcount.core.resource_limits import DEFAULTS, valid_sizes
from headcount.core.semantics import Semantics, add_semantics
from headcount.launch.backends import entry_of

if TYPE_CHECKING:
    from grader.exercise.declaration import Exercise
    from grader.exercise.verdict import SubmissionVerdict
    from grader.judge.judge import Settings
    from grader.submission.submission import Submission


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="a .py file or a notebook")
    parser.add_argument(
        "exercises",
        metavar="EXERCISE",
        nargs="*",
        help="the exercises to judge; if none is named, all that FILE defines",
    )
    add_json(parser)
    add_seed(parser, "repeat the inputs of an earlier check")
    parser.add_argument(
        "--world-sizes",
        type=_world_sizes,
        metavar="N,N,...",
        help="judge at these numbers of ranks",
    )
    parser.add_argument(
        "--backend",
        metavar="NAME",
        default="gloo",
        help="what carries the messages (default gloo); doctor says what can",
    )
    add_semantics(parser)
    add_seconds(
        parser,
        f"; {DEFAULTS.gpu_call:g} on GPUs); by the clock a call may"
        f" take {DEFAULTS.busy:g} times that, or twice for each rank",
    )


def _world_sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(
            f"world sizes are numbers with commas, as in 2,3,4, not {text!r}"
        ) from None


def run(options: Namespace) -> int:
    """Judge the file: 1 if an exercise is not passed."""
    from grader.course.index import course_index
    from grader.report.live import starting
    from grader.submission.submission import Submission

    sizes = None if options.world_sizes is None else valid_sizes(options.world_sizes)
    submission = Submission.from_file(options.file, course_index())
    wanted = _wanted(submission, options.exercises)
    with starting(wanted[0]):
        from headcount.launch.launchers import fork_server_here

        fork_server_here()
        from grader.api import catalogue, fresh_seed
        from grader.judge.judge import Settings

    seed = fresh_seed() if options.seed is None else options.seed
    verdict = _judge(
        submission,
        [catalogue()[name] for name in wanted],
        Settings(
            seed,
            sizes,
            seconds=options.seconds or entry_of(options.backend).call_seconds,
            backend=options.backend,
            semantics=Semantics(options.semantics),
        ),
    )
    if options.json:
        from grader.report.json import to_json

        print(to_json(verdict))
    else:
        from grader.report.text import submission_report

        show(submission_report(verdict))
    sys.stdout.flush()  # a reader gets the verdict before progress is written
    from grader.course.progress import note

    progress = None
    if options.semantics == Semantics.GLOO:
        progress = note(
            verdict.exercises, catalogue(), Path(options.file), sizes, options.backend, file=True
        )
    if progress is not None and not options.json:
        from grader.course.progress_report import sum_of

        print(sum_of(progress))
    return 0 if verdict.passed else 1


def _wanted(submission: Submission, names: Sequence[str]) -> list[str]:
    """Return the exercises to judge: those that are named, or all that the file defines.

    Raises:
        UnknownExercise: the course has no exercise of a name.
        RequestError: no name is given and the file defines no exercise.
    """
    from grader.course.index import course_index

    exercises = course_index()
    wanted = [exercises[name].name for name in dict.fromkeys(names)]
    if not wanted:
        defined = submission.names | set(submission.broken)
        wanted = [name for name in exercises if name in defined]
    if not wanted:
        raise RequestError(_nothing_in(submission))
    return wanted


def _nothing_in(submission: Submission) -> str:
    if submission.unparsed:
        fault = submission.unparsed[0]
        return f"{submission.label} is no Python: line {fault.line}: {fault.message}"
    for name, found in submission.elsewhere.items():
        return f"{submission.label} defines no exercise of the course; {name}: {found}"
    return (
        f"{submission.label} defines no exercise of the course;"
        " `python -m grader list` shows their names"
    )


def _judge(
    submission: Submission, exercises: Sequence[Exercise], settings: Settings
) -> SubmissionVerdict:
    """Judge exercises of a submission; one that it lacks is ``missing``."""
    from grader.exercise.verdict import SubmissionVerdict
    from grader.judge.judge import Judge
    from grader.report.live import LiveCount
    from headcount.launch.launchers import default_launcher

    judge = None
    verdicts = []
    for exercise in exercises:
        with LiveCount(exercise.name) as count:

            def note(done: int, of: int, count: LiveCount = count) -> None:
                stop_if_pressed()
                count(done, of)

            judge = judge or Judge(default_launcher(), settings)
            verdicts.append(judge.judge(exercise, submission, note))
    return SubmissionVerdict(submission.label, settings.seed, tuple(verdicts), settings.backend)
