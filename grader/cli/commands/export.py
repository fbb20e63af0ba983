"""Grades for spreadsheets, Canvas, Moodle, Gradescope, nbgrader and students."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from grader.classroom.exports import FORMATS, export


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("results", metavar="RESULTS", help="what grade has written")
    contents = "; ".join(f"{form.name}: {form.content}" for form in FORMATS.values())
    add("--format", choices=list(FORMATS), required=True, help=contents)
    folders = " and ".join(form.name for form in FORMATS.values() if form.is_folder)
    add("--to", metavar="PATH", required=True, help=f"a file; for {folders}, a folder")
    books = " or ".join(form.system for form in FORMATS.values() if form.fills_gradebook)
    add("--gradebook", metavar="FILE", help=f"of {books}, to be filled in")
    add("--title", default="", help="of the assignment there, if the results have another or none")
    add(
        "--force",
        action="store_true",
        help="replace grades under a title that is not that of the results",
    )


def run(options: Namespace) -> int:
    """Write the grades, and say on standard error what could not be written."""
    book = None if options.gradebook is None else Path(options.gradebook)
    results, to = Path(options.results), Path(options.to)
    for line in export(results, options.format, to, book, options.title.strip(), options.force):
        print(line, file=sys.stderr)
    return 0
