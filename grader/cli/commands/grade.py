"""Judge a whole class, in a sandbox."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.classroom.layouts import LAYOUTS
from grader.cli.options import add_jobs, add_json, add_sandbox, add_seconds, add_seed
from grader.cli.process import say
from headcount.core.errors import RequestError
from headcount.core.options import whole_number
from headcount.core.resource_limits import DEFAULTS

if TYPE_CHECKING:
    from grader.classroom.engines import Engine
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("submissions", metavar="SUBMISSIONS", help="a folder or an archive")
    add("--out", metavar="RESULTS", required=True, help="folder of the results")
    add("--assignment", metavar="FILE", help="an assignment.toml: what is due, and until when")
    add(
        "--exercises",
        metavar="02-05,NAME,...",
        help="what is due: chapters, ranges of chapters, exercises; without it, and without"
        " --assignment, whatever at least one student hands in",
    )
    add("--title", help="of the assignment, as your gradebook names it")
    add(
        "--only",
        metavar="STUDENT",
        action="append",
        default=[],
        help="grade this student of SUBMISSIONS, and keep everybody's row; may be repeated",
    )
    add(
        "--add",
        action="store_true",
        help="keep the rows of students of whom nothing is in SUBMISSIONS",
    )
    add(
        "--drop",
        metavar="STUDENT",
        action="append",
        default=[],
        help="delete the row of a student who has left; may be repeated",
    )
    layouts = ", ".join(f"{layout.name} ({layout.title})" for layout in LAYOUTS.values())
    add(
        "--layout",
        choices=list(LAYOUTS),
        metavar="LAYOUT",
        help=f"what SUBMISSIONS holds, where its names do not tell: {layouts}",
    )
    add_jobs(parser, "submissions")
    add("--engine", choices=["local", "dask", "slurm"], default="local", help="where they run")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster")
    add_sandbox(parser, "submission")
    add_seed(parser, "draw everybody's inputs from this number")
    add(
        "--timeout",
        type=whole_number,
        metavar="S",
        help=f"seconds of a submission in all, by the clock (default {DEFAULTS.submission:g})",
    )
    add_seconds(
        parser,
        f"); an exercise may take {DEFAULTS.exercise:g} s by the clock, and more with a larger S",
    )
    add(
        "--memory",
        type=whole_number,
        metavar="MB",
        help=f"of all ranks of a submission (default {DEFAULTS.submission_memory >> 20})",
    )
    add(
        "--viva",
        type=whole_number,
        metavar="N",
        default=0,
        help="draw N questions to each student about a run of their own code",
    )
    add("--viva-seed", type=int, metavar="N", default=0, help="draw other questions")
    add("--force", action="store_true", help="judge again what has not changed")
    add("--log", metavar="FILE", help="add to this file what happens, with its time")
    add_json(parser)


def run(options: Namespace) -> int:
    """Judge the class, as :func:`grader.classroom.command.grade` says."""
    for option in ("submissions", "out", "exercises"):
        if getattr(options, option) == "":  # as of a variable of the shell that is not set
            raise RequestError(f"{option.upper()} is empty; say which")
    if not Path(options.submissions).exists():
        raise RequestError(f"{options.submissions} does not exist")
    if options.log is not None:
        _log_to(options.log)
    from grader.classroom.assignment import LimitsTable, read_assignment, requested
    from grader.classroom.command import Options, grade, hidden_folders
    from grader.classroom.engines import LocalEngine, connect, cores, slurm, warning_of
    from grader.classroom.messages import Limits
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the local engine forks its workers
    stated = None if options.assignment is None else read_assignment(Path(options.assignment))
    if stated is not None and options.exercises:
        raise RequestError(
            f"--exercises, and {options.assignment}, both say what is due; say it in one place"
        )
    title = options.title.strip() if options.title is not None else ""
    if options.title is not None and not title:
        raise RequestError("--title is empty; name the assignment as your gradebook does")
    grading = Options(
        Limits(sandbox=options.sandbox != "none"),
        options.seed,
        options.force,
        options.layout,
        stated,
        title,
        requested(options.exercises.split(",")) if options.exercises else (),
        options.add,
        tuple(options.only),
        tuple(options.drop),
        LimitsTable(options.timeout, options.seconds, options.memory),
        (options.viva, options.viva_seed),
    )
    source, out = Path(options.submissions), Path(options.out)

    def make_engine(submissions: int) -> Engine:
        if options.engine == "slurm":
            return slurm(options.jobs)
        if options.engine == "dask" or options.scheduler:
            if options.scheduler and (warning := warning_of(options.scheduler)):
                say(f"warning: {warning}")
            return connect(options.scheduler, options.jobs)
        jobs = min(options.jobs or cores(), submissions)
        return LocalEngine(jobs, hidden_folders(source, out) if grading.limits.sandbox else None)

    def exercises() -> Catalogue[Exercise]:
        from grader.api import catalogue

        return catalogue()

    return grade(source, out, make_engine, exercises, grading, options.json)


class _LogFile(logging.FileHandler):
    """A file of a log, which ends no grading where it cannot be written, and says so once."""

    _lost = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say that something is missing in the file."""
        if not self._lost:
            self._lost = True
            say(f"warning: --log {self.baseFilename} cannot be written; the grading goes on")


def _log_to(path: str) -> None:
    """Write what the grader logs to the end of a file.

    Raises:
        RequestError: the file cannot be written.
    """
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"--log {path}: {error.strerror}; name a file to write") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    logger = logging.getLogger("grader")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
