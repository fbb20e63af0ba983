"""Which exercises you have passed."""

from argparse import ArgumentParser, Namespace

from grader.cli.options import add_json
from grader.cli.process import show


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the progress: 1 if what is kept of it cannot be read."""
    from grader.course.index import course_index
    from grader.course.progress import overview

    found = overview(course_index())
    if options.json:
        from grader.course.progress_report import progress_json

        print(progress_json(found))
    else:
        from grader.course.progress_report import progress_report

        show(progress_report(found))
    return 1 if found.trouble else 0
