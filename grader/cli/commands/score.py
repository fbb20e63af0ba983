"""The rewards of such answers, in a sandbox."""

import contextlib
import json
import secrets
from argparse import ArgumentParser, Namespace
from pathlib import Path

from grader.cli.options import add_jobs, add_json, add_sandbox, add_seed
from grader.cli.process import say, stop_if_pressed
from headcount.core.errors import RequestError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "answers",
        metavar="ANSWERS",
        help="a folder with EXERCISE.py for each answer, or a .jsonl file whose lines have task,"
        " answer and sample",
    )
    add_jobs(parser, "answers")
    add_seed(
        parser,
        "draw the inputs from this number; otherwise from one that nobody could know before",
    )
    add_sandbox(parser, "answer")
    add_json(parser)


def run(options: Namespace) -> int:
    """Judge the answers: 1 if one could not be judged."""
    from grader.classroom.tasks import (
        read_answers,
        score_answers,
        score_line,
        scores_as_dict,
        summary_line,
    )
    from grader.course.index import course_index

    source = Path(options.answers)
    answers = read_answers(source, course_index(), say)
    from grader.classroom.engines import LocalEngine, cores
    from grader.classroom.messages import Limits, require_long
    from grader.sandbox.sandboxes import SandboxPool
    from headcount.launch.launchers import use_one_thread

    use_one_thread()  # the engine forks its workers
    limits = Limits(sandbox=options.sandbox != "none")
    seed = secrets.randbits(128) if options.seed is None else options.seed
    if limits.sandbox:
        if options.seed is not None:
            require_long(seed)
        try:
            SandboxPool.rehearse()
        except RequestError as error:
            raise RequestError(
                f"{error}; see `python -m grader doctor`, or score without: --sandbox none"
            ) from None
    else:
        say("warning: no sandbox: the answers run as you, and can do whatever you can")
    jobs = min(options.jobs or cores(), len(answers))
    hidden = [source if source.is_dir() else source.parent]
    with contextlib.closing(LocalEngine(jobs, hidden if limits.sandbox else None)) as engine:
        from grader.api import catalogue

        scores = []
        for score in score_answers(answers, engine, catalogue(), seed, limits, hidden):
            stop_if_pressed()
            scores.append(score)
            if not options.json:
                print(score_line(score), flush=True)
    order = {(one.task, one.sample): i for i, one in enumerate(answers)}
    scores.sort(key=lambda score: order[score.answer.task, score.answer.sample])
    found = scores_as_dict(scores, seed, limits.sandbox)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(summary_line(found))
    return 1 if any(score.verdict.status == "error" for score in scores) else 0
