"""Why a job has stopped, from the dumps of PyTorch's flight recorder."""

from argparse import ArgumentParser, Namespace

from headcount.script.command import add_explain_options


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_explain_options(parser)


def run(options: Namespace) -> int:
    """Explain the dumps: 3 if they show a fault."""
    from headcount.script.command import explain_command

    return explain_command(options)
