"""What this machine can do, and what to install for the rest."""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Declare no argument: the command has none."""


def run(options: Namespace) -> int:
    """Examine the machine: 1 if the course does not work on it."""
    from headcount.launch.launchers import fork_server_here

    fork_server_here()
    from grader.doctor import examine

    return examine()
