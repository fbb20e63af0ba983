"""Run an answer on simulated ranks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from grader.cli.options import add_json, add_seed
from grader.cli.process import show
from headcount.core.files import contents
from headcount.core.options import add_cluster_options, algorithms


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a .py file or a notebook")
    add("exercise", metavar="EXERCISE", help="the exercise to run")
    add_cluster_options(parser)
    add_seed(parser, "repeat the inputs of an earlier run")
    add_json(parser)


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
        algorithms=algorithms(options.algorithm),
        seed=seed,
    )
    if options.json:
        print(growth_json(grown, exercise, cluster, seed))
    else:
        show(growth_report(grown, exercise, cluster, options.cluster or "", seed))
    return 0 if all(verdict.passed for verdict in grown.verdicts) else 1
