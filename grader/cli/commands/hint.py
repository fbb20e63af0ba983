"""A hint on an exercise."""

from argparse import ArgumentParser, Namespace

from grader.cli.process import show


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("exercise", metavar="EXERCISE", help="its name, as list shows it")
    parser.add_argument(
        "--more",
        action="count",
        default=0,
        help="all hints, from gentle to plain; twice: the whole answer, too, if the last one is it",
    )


def run(options: Namespace) -> int:
    """Print the first hint, or as many as are asked for."""
    from grader.course.help import help_of
    from grader.course.index import course_index
    from grader.report.text import hints_report

    exercise = course_index()[options.exercise]
    known = help_of(exercise.chapter)[exercise.name]
    command = f"python -m grader hint {exercise.name}"
    kept_back = options.more == 1 and known.tells_all
    shown = len(known.hints) - kept_back if options.more else 1
    left = len(known.hints) - shown
    more = f"{left} more: {command} --more" if left else ""
    if left == 1 and known.tells_all:
        more = f"The next hint is the whole answer. To see it: {command} --more --more"
    show(hints_report(known.hints[:shown], more))
    return 0
