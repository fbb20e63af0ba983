"""The options of ``python -m grader simulate``, and what they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.core.errors import RequestError

__all__ = ["add_options", "serve"]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is needed, not {text!r}")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell a parser what can be asked for."""
    add = parser.add_argument
    add("file", metavar="FILE")
    add("exercise", metavar="EXERCISE")
    add("--ranks", type=_count, metavar="N", required=True, help="how many")
    add("--alpha", type=float, metavar="S", help="seconds of a message (1e-6)")
    add("--beta", type=float, metavar="S/B", help="seconds of each of its bytes (1e-10)")
    add("--cluster", metavar="NAME", help="a cluster by name, or a .json file, instead")
    add(
        "--eager",
        type=_count,
        metavar="B",
        default=-1,
        help="a send of up to so many bytes does not wait for its receive",
    )
    add(
        "--algorithm",
        action="append",
        default=[],
        metavar="COLLECTIVE=NAME",
        help="of a built-in collective, such as all_reduce=ring",
    )
    add("--seed", type=int, help="repeat the inputs of an earlier run")
    add("--json", action="store_true", help="print one JSON object")


def serve(request: argparse.Namespace) -> int:
    """Do what is asked for; the exit status."""
    from grader.core.errors import contents

    contents(Path(request.file))  # what cannot be read is said before torch is imported
    from grader.api import catalogue, fresh_seed
    from grader.launch.launchers import warm_up

    warm_up()
    from grader.api.simulate import cluster_of, simulate_answer
    from grader.report.json import growth_json
    from grader.report.text import growth_report

    cluster = cluster_of(request.cluster, request.alpha, request.beta)
    exercises = catalogue()
    exercise = exercises[request.exercise]
    seed = fresh_seed() if request.seed is None else request.seed
    grown = simulate_answer(
        request.file,
        exercise,
        exercises,
        request.ranks,
        cluster,
        eager=request.eager,
        algorithms=_algorithms(request.algorithm),
        seed=seed,
    )
    if request.json:
        print(growth_json(grown, exercise, cluster, seed))
    else:
        from rich.console import Console

        report = growth_report(grown, exercise, cluster, request.cluster or "", seed)
        Console(highlight=False).print(report)
    return 0 if all(verdict.passed for verdict in grown.verdicts) else 1


def _algorithms(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        collective, equals, name = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"--algorithm wants COLLECTIVE=NAME, as in all_reduce=ring, not {text!r}"
            )
        found[collective] = name
    return found
