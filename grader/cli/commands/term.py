"""Several assignments in one gradebook, and a page about the term."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "results", metavar="RESULTS", nargs="+", help="what grade has written, in the term's order"
    )
    parser.add_argument("--to", metavar="DIR", required=True, help="a folder")
    parser.add_argument("--people", metavar="FILE", help="the table that says who is who")


def run(options: Namespace) -> int:
    """Write the gradebook and the page."""
    from grader.classroom.term import term

    people = Path(options.people) if options.people else None
    for line in term([Path(one) for one in options.results], Path(options.to), people):
        print(line, file=sys.stderr)
    print(f"{options.to}: term.csv and term.html")
    return 0
