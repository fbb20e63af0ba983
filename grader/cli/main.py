"""The command line: ``python -m grader``.

Exit status: 0 all passed, 1 something failed, 2 the request itself was wrong, or cannot be served
on this machine as it is.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence

from grader import __version__
from grader.cli.commands import COMMANDS
from grader.errors import MissingPackage
from headcount.core import commands
from headcount.core.options import Parser

__all__ = ["main", "make_parser"]


def _program() -> str:
    """Return how this program is called, by which its usage begins."""
    name = os.path.basename(sys.argv[0])
    return name if name == "gather-round" else "python -m grader"


def make_parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return a parser of requests for some commands, whose modules are imported for it."""
    parser = Parser(prog=_program(), description="The grader of Gather Round.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=__version__)
    found = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    for name in names:
        module = importlib.import_module(f"grader.cli.commands.{name}")
        text = module.__doc__ or ""
        command = found.add_parser(
            name,
            help=(text[:1].lower() + text[1:]).removesuffix("."),
            description=text,
            epilog=f"For example: {parser.prog} {name} {COMMANDS[name]}",
        )
        command.set_defaults(serve=module.run)
        module.add_arguments(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one request, and return the exit status."""
    words = sys.argv[1:] if arguments is None else arguments

    def request() -> int:
        if not words:
            make_parser().print_help()
            return 2
        named = [name for name in words[:1] if name in COMMANDS]
        options = make_parser(named or COMMANDS).parse_args(words)
        status: int = options.serve(options)
        return status

    return commands.serve("grader", request, failed=1, refusal=_missing_package)


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """Return what is said of a package that is not installed; None if no extra has it."""
    missing = MissingPackage.from_error("this command", error)
    return None if missing is None else str(missing)
