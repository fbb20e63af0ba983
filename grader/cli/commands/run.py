"""Run a training script of your own, and say why it hangs."""

from argparse import ArgumentParser, Namespace

from headcount.script.command import add_run_options, run_script_command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments; all that follow the script are its own."""
    parser.usage = "%(prog)s [OPTION ...] SCRIPT [ARGUMENT ...]"
    add_run_options(parser)


def run(options: Namespace) -> int:
    """Run the script, and return the status that :mod:`headcount.script.command` documents."""
    return run_script_command(options)
