"""What students get: everything but solutions."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import grader


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("to", metavar="DIR", help="a new folder")
    parser.add_argument(
        "--without-answers",
        action="store_true",
        help="leave out the last hint on each exercise, which is the whole answer",
    )


def run(options: Namespace) -> int:
    """Write the students' course."""
    from grader.api import catalogue
    from grader.cli.release import release

    course = Path(grader.__file__).resolve().parent.parent
    count = release(course, Path(options.to), catalogue(), answers=not options.without_answers)
    hints = " and without the hints that are whole answers" if options.without_answers else ""
    print(f"{options.to}: {count} files, without solutions{hints}")
    return 0
