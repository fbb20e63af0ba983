"""Decide about a grade by hand; without a decision, list those that were made."""

import math
from argparse import ArgumentParser, Namespace
from pathlib import Path

from grader.cli.options import STUDENT
from headcount.core.errors import RequestError
from headcount.core.options import whole_number


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = (
        "%(prog)s RESULTS STUDENT EXERCISE --points P --why WHY\n"
        "       %(prog)s RESULTS STUDENT --extend DATE --why WHY\n"
        "       %(prog)s RESULTS STUDENT [EXERCISE] --excuse --why WHY\n"
        "       %(prog)s RESULTS --undo N\n"
        "       %(prog)s RESULTS [STUDENT]"
    )
    add = parser.add_argument
    add("results", metavar="RESULTS", help="what grade has written")
    add("student", metavar="STUDENT", nargs="?", default="", help=STUDENT)
    add("exercise", metavar="EXERCISE", nargs="?", default="", help="an exercise")
    add("--points", type=float, metavar="P", help="the points that the exercise earns")
    add("--extend", metavar="DATE", default="", help="by when the student may hand in")
    add("--excuse", action="store_true", help="count it neither for nor against the student")
    add("--undo", type=whole_number, metavar="N", help="undo a decision, by its number in the list")
    add("--why", metavar="WHY", default="", help="the reason, which the student sees")
    add("--by", metavar="NAME", default="", help="who decides (your login name)")
    add("--ahead", action="store_true", help="the student has handed in nothing yet")


def run(options: Namespace) -> int:
    """Note the decision, or print those that were made."""
    from grader.classroom.marking import MarkRequest, mark

    if options.points is not None and not math.isfinite(options.points):
        raise RequestError(f"--points is a number, not {options.points}")
    return mark(
        Path(options.results),
        MarkRequest(
            student=options.student,
            exercise=options.exercise,
            points=options.points,
            extend=options.extend,
            excuse=options.excuse,
            undo=options.undo,
            why=options.why,
            by=options.by.strip(),
            ahead=options.ahead,
        ),
    )
