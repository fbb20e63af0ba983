"""Run an answer on simulated ranks."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from pathlib import Path

from grader.cli.options import add_json, add_seed
from grader.cli.process import show
from grader.course.bench.plan import count
from headcount.core.errors import RequestError
from headcount.core.files import contents


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a .py file or a notebook")
    add("exercise", metavar="EXERCISE", help="the exercise to run")
    add("--ranks", type=count, metavar="N", required=True, help="how many ranks to simulate")
    add("--alpha", type=float, metavar="S", help="seconds of a message (1e-6)")
    add("--beta", type=float, metavar="S/B", help="seconds of each of its bytes (1e-10)")
    add("--cluster", metavar="NAME", help="a cluster by name, or a .json file, instead")
    add(
        "--eager",
        type=_eager,
        metavar="B",
        default=-1,
        help="a send of up to so many bytes does not wait for its receive (-1: every send waits)",
    )
    add(
        "--algorithm",
        action="append",
        default=[],
        metavar="COLLECTIVE=NAME",
        help="of a built-in collective, such as all_reduce=ring",
    )
    add_seed(parser, "repeat the inputs of an earlier run")
    add_json(parser)


def _eager(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or int(text) < -1:
        raise ArgumentTypeError(f"a whole number from -1 on is needed, not {text!r}")
    return int(text)


def run(options: Namespace) -> int:
    """Run the answer: 1 if it is wrong."""
    contents(Path(options.file))
    from headcount.launch.launchers import fork_server_here

    fork_server_here()
    from grader.api import catalogue, fresh_seed
    from grader.api.simulate import cluster_of, simulate_answer
    from grader.report.json import growth_json
    from grader.report.text import growth_report

    cluster = cluster_of(options.cluster, options.alpha, options.beta)
    exercises = catalogue()
    exercise = exercises[options.exercise]
    seed = fresh_seed() if options.seed is None else options.seed
    grown = simulate_answer(
        options.file,
        exercise,
        exercises,
        options.ranks,
        cluster,
        eager=options.eager,
        algorithms=_algorithms(options.algorithm),
        seed=seed,
    )
    if options.json:
        print(growth_json(grown, exercise, cluster, seed))
    else:
        show(growth_report(grown, exercise, cluster, options.cluster or "", seed))
    return 0 if all(verdict.passed for verdict in grown.verdicts) else 1


def _algorithms(texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        collective, equals, name = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"--algorithm wants COLLECTIVE=NAME, as in all_reduce=ring, not {text!r}"
            )
        found[collective] = name
    return found
