"""The command line: ``headcount run``, ``explain``, ``attach`` and ``simulate``.

Exit status: 0 all right; 1 something failed by itself, such as a script; 2 the request was wrong,
as one line says; 3 a fault between ranks; 4 the time limit is over; 5 headcount itself has failed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headcount import __version__
from headcount.core.commands import serve
from headcount.core.errors import RequestError
from headcount.core.files import contents
from headcount.core.options import Parser, add_cluster_options, algorithms
from headcount.core.semantics import add_semantics
from headcount.script.attach.command import add_attach_options
from headcount.script.command import add_explain_options, add_run_options

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="headcount", description="Which rank did not show up, and why.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="run a torch.distributed script, and say why it hangs")
    add_run_options(run)
    run.set_defaults(serve=_run)
    explain = commands.add_parser(
        "explain", help="why a job has stopped, from the dumps of PyTorch's flight recorder"
    )
    add_explain_options(explain)
    explain.set_defaults(serve=_explain)
    attach = commands.add_parser(
        "attach", help="which rank holds up a job that hangs now, read from outside"
    )
    add_attach_options(attach)
    attach.set_defaults(serve=_attach)
    simulate = commands.add_parser("simulate", help="run a function on simulated ranks")
    simulate.add_argument("file", metavar="FILE", help="the .py file that defines the function")
    simulate.add_argument("function", metavar="FUNCTION", help="the function")
    simulate.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="a value in Python")
    add_cluster_options(simulate)
    add_semantics(simulate)
    simulate.add_argument("--seed", type=int, help="repeat the random numbers of an earlier run")
    simulate.set_defaults(serve=_simulate)
    return parser


def _run(request: argparse.Namespace) -> int:
    from headcount.script.command import run_script_command

    return run_script_command(request)


def _explain(request: argparse.Namespace) -> int:
    from headcount.script.command import explain_command

    return explain_command(request)


def _attach(request: argparse.Namespace) -> int:
    from headcount.script.attach.command import attach_command

    return attach_command(request)


def _simulate(request: argparse.Namespace) -> int:
    from headcount.launch.launchers import fork_server_here

    fork_server_here()
    from headcount.script.report import exit_status
    from headcount.simulations import simulate

    ran = simulate(
        _function(Path(request.file), request.function),
        request.ranks,
        *map(_value, request.arguments),
        cluster=request.cluster,
        alpha=request.alpha,
        beta=request.beta,
        eager=request.eager,
        algorithms=algorithms(request.algorithm),
        seed=request.seed,
        semantics=request.semantics,
        may_fail=True,
    )
    print(repr(ran), file=sys.stderr if ran.failure else sys.stdout)
    return exit_status(ran.failure)


def _function(file: Path, name: str) -> Callable[..., Any]:
    """Return a function that a file defines, which is imported as a module of its own.

    Raises:
        RequestError: there is no such file, it cannot be imported, or it defines no such function.
    """
    contents(file, ".py")
    if file.suffix != ".py":
        raise RequestError(f"{file} is no .py file")
    spec = importlib.util.spec_from_file_location(file.stem, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # its own sys.exit() is no end of this command
        raise RequestError(f"{file} cannot be imported: {type(error).__name__}: {error}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise RequestError(f"{file} defines no function {name}")
    return found  # type: ignore[no-any-return]


def _value(text: str) -> Any:
    """Return an argument: what it is in Python, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the command line, and return the exit status."""

    def command() -> int:
        words, parser = sys.argv[1:] if arguments is None else arguments, _parser()
        if not words:
            parser.print_help()
            return 2
        request = parser.parse_args(words)
        status: int = request.serve(request)
        return status

    return serve("headcount", command, failed=5)
