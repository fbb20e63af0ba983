"""Judge one answer again as it was judged, and compare the verdicts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.options import STUDENT

if TYPE_CHECKING:
    from grader.classroom.engines import Engine
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("results", metavar="RESULTS", help="what grade has written")
    parser.add_argument("student", metavar="STUDENT", help=STUDENT)
    parser.add_argument("exercise", metavar="EXERCISE", help="an exercise")
    parser.add_argument("--submissions", metavar="PATH", help="where the submissions are now")


def run(options: Namespace) -> int:
    """Judge the answer again, as :func:`grader.classroom.reproduction.reproduce` says."""
    from grader.classroom.reproduction import look_up, reproduce

    moved = None if options.submissions is None else Path(options.submissions)
    stored = look_up(Path(options.results), options.student, options.exercise, moved)

    from grader.classroom.command import hidden_folders
    from grader.classroom.engines import LocalEngine
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the engine forks its worker
    hidden = hidden_folders(stored.source, stored.folder) if stored.limits.sandbox else None

    def make_engine() -> Engine:
        return LocalEngine(1, hidden)

    def exercises() -> Catalogue[Exercise]:
        from grader.api import catalogue

        return catalogue()

    return reproduce(stored, make_engine, exercises)
