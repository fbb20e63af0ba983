"""One table of the people of a class, from all rosters; what is not clear in it, it asks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "rosters",
        metavar="ROSTER",
        nargs="+",
        help="gradebooks, worksheets and lists, as CSV files",
    )
    parser.add_argument(
        "--to", metavar="FILE", required=True, help="such as people.toml; one that is there grows"
    )


def run(options: Namespace) -> int:
    """Write the table, and print what is not clear."""
    from grader.classroom.people import update

    print("\n".join(update([Path(one) for one in options.rosters], Path(options.to))))
    return 0
