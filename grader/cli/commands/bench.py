"""A table like nccl-tests', also under torchrun."""

from argparse import ArgumentParser, Namespace

from grader.course.bench.plan import add_options


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_options(parser)


def run(options: Namespace) -> int:
    """Measure, and print the table."""
    from grader.course.bench.command import serve

    return serve(options)
